// Declarations of the part of CoreFoundation that objc/ uses; checked against the SDK's facts.
#ifndef NNBT_COREFOUNDATION_H
#define NNBT_COREFOUNDATION_H
#include <stdint.h>

#define CF_RETURNS_RETAINED __attribute__((cf_returns_retained))
#define CF_RELEASES_ARGUMENT __attribute__((cf_consumed))

#ifdef __cplusplus
extern "C" {
#endif

#pragma clang assume_nonnull begin

typedef const void* CFTypeRef;
typedef double CFTimeInterval;
typedef const struct __CFAllocator* CFAllocatorRef;
typedef const struct __attribute__((objc_bridge(NSString))) __CFString* CFStringRef;
typedef const struct __attribute__((objc_bridge(NSNumber))) __CFBoolean* CFBooleanRef;
typedef const struct __attribute__((objc_bridge(NSDictionary))) __CFDictionary* CFDictionaryRef;
typedef struct __attribute__((objc_bridge_mutable(NSMutableDictionary)))
__CFDictionary* CFMutableDictionaryRef;
typedef struct __attribute__((objc_bridge(NSError))) __CFError* CFErrorRef;

extern const CFAllocatorRef _Null_unspecified kCFAllocatorDefault;
extern const CFBooleanRef kCFBooleanTrue;
void CFRelease(CFTypeRef cf);

#pragma clang assume_nonnull end

#ifdef __cplusplus
}
#endif
#endif
