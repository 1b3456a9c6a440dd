// GCC's <objc/runtime.h> has an inline function that ARC rejects; with ARC, only these declarations
// are needed.
#if !__has_feature(objc_arc)
#include_next <objc/runtime.h>
#elif !defined(NNBT_OBJC_RUNTIME_H)
#define NNBT_OBJC_RUNTIME_H
#define __objc_runtime_INCLUDE_GNU
#include <objc/objc.h>
#include <stddef.h>
typedef struct objc_ivar* Ivar;
typedef struct objc_property *Property, *objc_property_t;
typedef struct objc_method* Method;
typedef struct objc_category* Category;
struct objc_method_description {
  SEL name;
  char* types;
};
#ifdef __cplusplus
extern "C" {
#endif
const char* class_getName(Class c);
Class class_getSuperclass(Class c);
BOOL class_respondsToSelector(Class c, SEL s);
const char* sel_getName(SEL s);
#ifdef __cplusplus
}
#endif
#endif
