// Lets Objective-C++ that clang compiled for ARC in the ObjFW ABI run on GCC's libobjc and GNUstep:
//  1. the loader hook accepts ObjFW's module and protocol versions, which are GCC's old layout;
//  2. ARC's entry points, in terms of retain, release and autorelease;
//  3. a blocks runtime that retains what blocks capture.
// Every symbol is hidden inside our own library, so nothing else in the process changes.
// Weak references are missing on purpose: sources that need them don't link here.
#import <Foundation/Foundation.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

// ---- modules ----------------------------------------------------------------------------------

struct protocol_list;
struct protocol {
  void* isa;  // holds the protocol ABI version until the runtime registers it
  char* name;
  struct protocol_list* protocols;
  void *instance_methods, *class_methods;
};
struct protocol_list {
  struct protocol_list* next;
  size_t count;
  struct protocol* list[];
};
struct category {
  const char *name, *class_name;
  void *instance_methods, *class_methods;
  struct protocol_list* protocols;
};
struct symbol_table {
  size_t selector_count;
  void* selectors;
  uint16_t class_count, category_count;
  void* definitions[];
};
struct module {
  size_t version, size;
  const char* name;
  struct symbol_table* symbols;
};
enum {
  GCC_MODULE = 8,
  OBJFW_MODULE = 9,
  OBJFW_MODULE_ARC = 10,
  GCC_PROTOCOL = 2,
  OBJFW_PROTOCOL = 3
};

static void accept_protocols(struct protocol_list* list) {
  for (; list != NULL; list = list->next) {
    for (size_t i = 0; i < list->count; i++) {
      struct protocol* protocol = list->list[i];
      if (protocol == NULL || (uintptr_t)protocol->isa != OBJFW_PROTOCOL) continue;
      protocol->isa = (void*)GCC_PROTOCOL;
      accept_protocols(protocol->protocols);
    }
  }
}

HIDDEN void __objc_exec_class(void* argument) {
  static void (*next)(void*);
  if (next == NULL) next = (void (*)(void*))dlsym(RTLD_NEXT, "__objc_exec_class");
  if (next == NULL) abort();
  struct module* module = argument;
  if (module->version == OBJFW_MODULE || module->version == OBJFW_MODULE_ARC) {
    struct symbol_table* symbols = module->symbols;
    if (symbols->class_count != 0) {
      fprintf(stderr, "%s: @implementation is only possible without ARC here\n", module->name);
      abort();
    }
    for (int i = 0; i < symbols->category_count; i++) {
      accept_protocols(((struct category*)symbols->definitions[i])->protocols);
    }
    module->version = GCC_MODULE;
    module->size = sizeof(struct module);
  }
  next(module);
}

// ---- blocks -----------------------------------------------------------------------------------

struct block_descriptor {
  unsigned long reserved, size;
  void (*copy)(void* to, void* from);
  void (*dispose)(void* block);
};
struct block {
  void* isa;
  _Atomic int flags;  // the low half counts references
  int reserved;
  void (*invoke)(void);
  struct block_descriptor* descriptor;
};
struct by_reference {
  void* isa;
  struct by_reference* forwarding;
  _Atomic int flags;
  unsigned size;
  void (*keep)(void* to, void* from);
  void (*destroy)(void* variable);
};
enum {
  REFERENCES = 0xffff,
  NEEDS_FREE = 1 << 24,
  HAS_HELPERS = 1 << 25,
  IS_GLOBAL = 1 << 28,
  FIELD_IS_BLOCK = 7,
  FIELD_IS_BY_REFERENCE = 8,
  CALLED_FROM_BY_REFERENCE = 128
};

HIDDEN void *_NSConcreteStackBlock[32], *_NSConcreteGlobalBlock[32];
static void* heap_block[32];

static int is_block(const void* object) {
  void* isa = *(void**)object;
  return isa == _NSConcreteStackBlock || isa == _NSConcreteGlobalBlock || isa == heap_block;
}

HIDDEN void* _Block_copy(const void* argument) {
  struct block* original = (struct block*)argument;
  if (original == NULL || (original->flags & IS_GLOBAL)) return original;
  if (original->flags & NEEDS_FREE) {
    original->flags++;
    return original;
  }
  struct block* copy = malloc(original->descriptor->size);
  memcpy(copy, original, original->descriptor->size);
  copy->flags = (original->flags & ~REFERENCES) | NEEDS_FREE | 1;
  copy->isa = heap_block;
  if (copy->flags & HAS_HELPERS) copy->descriptor->copy(copy, original);
  return copy;
}

HIDDEN void _Block_release(const void* argument) {
  struct block* block = (struct block*)argument;
  if (block == NULL || !(block->flags & NEEDS_FREE)) return;
  if (((--block->flags) & REFERENCES) != 0) return;
  if (block->flags & HAS_HELPERS) block->descriptor->dispose(block);
  free(block);
}

HIDDEN id objc_retain(id object) {
  if (object == nil) return nil;
  return is_block(object) ? (id)_Block_copy(object) : [object retain];
}

HIDDEN void objc_release(id object) {
  if (object == nil) return;
  if (is_block(object)) {
    _Block_release(object);
  } else {
    [object release];
  }
}

static struct by_reference* share(struct by_reference* source) {
  if ((source->forwarding->flags & REFERENCES) != 0) {
    if (source->forwarding->flags & NEEDS_FREE) source->forwarding->flags++;
    return source->forwarding;
  }
  struct by_reference* copy = malloc(source->size);
  memcpy(copy, source, source->size);
  copy->flags = source->flags | NEEDS_FREE | 2;  // the block's and the stack frame's
  copy->forwarding = copy;
  source->forwarding = copy;
  if (source->flags & HAS_HELPERS) copy->keep(copy, source);
  return copy;
}

HIDDEN void _Block_object_assign(void* to, const void* from, const int kind) {
  const void** field = to;
  if (kind & CALLED_FROM_BY_REFERENCE) {
    *field = from;
  } else if (kind & FIELD_IS_BY_REFERENCE) {
    *field = share((struct by_reference*)from);
  } else if ((kind & FIELD_IS_BLOCK) == FIELD_IS_BLOCK) {
    *field = _Block_copy(from);
  } else {
    *field = objc_retain((id)from);
  }
}

HIDDEN void _Block_object_dispose(const void* field, const int kind) {
  if (field == NULL || (kind & CALLED_FROM_BY_REFERENCE)) return;
  if (!(kind & FIELD_IS_BY_REFERENCE)) {
    objc_release((id)field);
    return;
  }
  struct by_reference* variable = ((struct by_reference*)field)->forwarding;
  if (!(variable->flags & NEEDS_FREE)) return;
  if (((--variable->flags) & REFERENCES) != 0) return;
  if (variable->flags & HAS_HELPERS) variable->destroy(variable);
  free(variable);
}

// ---- ARC --------------------------------------------------------------------------------------

HIDDEN id objc_retainBlock(id block) { return (id)_Block_copy(block); }
HIDDEN id objc_autorelease(id object) {
  if (object != nil && !is_block(object)) [object autorelease];
  return object;
}
HIDDEN id objc_retainAutorelease(id object) { return objc_autorelease(objc_retain(object)); }
HIDDEN id objc_autoreleaseReturnValue(id object) { return objc_autorelease(object); }
HIDDEN id objc_retainAutoreleaseReturnValue(id object) { return objc_retainAutorelease(object); }
HIDDEN id objc_retainAutoreleasedReturnValue(id object) { return objc_retain(object); }
HIDDEN id objc_unsafeClaimAutoreleasedReturnValue(id object) { return object; }
HIDDEN id objc_claimAutoreleasedReturnValue(id object) { return objc_retain(object); }
HIDDEN void objc_storeStrong(id* slot, id value) {
  id previous = *slot;
  *slot = objc_retain(value);
  objc_release(previous);
}
HIDDEN void* objc_autoreleasePoolPush(void) { return [NSAutoreleasePool new]; }
HIDDEN void objc_autoreleasePoolPop(void* pool) { [(NSAutoreleasePool*)pool drain]; }
