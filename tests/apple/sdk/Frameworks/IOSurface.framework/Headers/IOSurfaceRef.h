// Declarations of the part of IOSurface that objc/ uses; checked against the SDK's facts.
#ifndef NNBT_IOSURFACE_H
#define NNBT_IOSURFACE_H
#include <CoreFoundation/CoreFoundation.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma clang assume_nonnull begin

typedef struct __attribute__((objc_bridge(id))) __IOSurface* IOSurfaceRef;
enum __attribute__((flag_enum, enum_extensibility(open))) IOSurfaceLockOptions : uint32_t {
  kIOSurfaceLockReadOnly = 1
};
typedef enum IOSurfaceLockOptions IOSurfaceLockOptions;

extern const CFStringRef kIOSurfaceWidth;
extern const CFStringRef kIOSurfaceHeight;
extern const CFStringRef kIOSurfaceBytesPerElement;
extern const CFStringRef kIOSurfaceBytesPerRow;
extern const CFStringRef kIOSurfaceAllocSize;

IOSurfaceRef _Nullable IOSurfaceCreate(CFDictionaryRef properties) CF_RETURNS_RETAINED;
int IOSurfaceLock(IOSurfaceRef buffer, IOSurfaceLockOptions options, uint32_t* _Nullable seed);
int IOSurfaceUnlock(IOSurfaceRef buffer, IOSurfaceLockOptions options, uint32_t* _Nullable seed);
void* IOSurfaceGetBaseAddress(IOSurfaceRef buffer);
size_t IOSurfaceGetAllocSize(IOSurfaceRef buffer);

#pragma clang assume_nonnull end

#ifdef __cplusplus
}
#endif
#endif
