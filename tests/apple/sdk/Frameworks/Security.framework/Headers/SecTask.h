// Declarations of the part of Security that objc/ uses; checked against the SDK's facts.
#ifndef NNBT_SECTASK_H
#define NNBT_SECTASK_H
#include <CoreFoundation/CoreFoundation.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct __attribute__((objc_bridge(id))) __SecTask* SecTaskRef;

SecTaskRef _Nullable SecTaskCreateFromSelf(CFAllocatorRef _Nullable allocator) CF_RETURNS_RETAINED;
CFTypeRef _Nullable SecTaskCopyValueForEntitlement(
    SecTaskRef _Nonnull task, CFStringRef _Nonnull entitlement,
    CFErrorRef _Nullable* _Nullable error) CF_RETURNS_RETAINED;

#ifdef __cplusplus
}
#endif
#endif
