// Declarations of the part of IOKit that objc/ uses; checked against the SDK's facts.
#ifndef NNBT_IOKITLIB_H
#define NNBT_IOKITLIB_H
#include <CoreFoundation/CoreFoundation.h>
#include <mach/kern_return.h>
#include <mach/port.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef mach_port_t io_object_t;
typedef io_object_t io_registry_entry_t;
typedef io_object_t io_service_t;
typedef uint32_t IOOptionBits;
#define IO_OBJECT_NULL ((io_object_t)0)

CFMutableDictionaryRef _Nullable IOServiceMatching(const char* _Nonnull name) CF_RETURNS_RETAINED;
io_service_t IOServiceGetMatchingService(mach_port_t mainPort,
                                         CFDictionaryRef _Nullable matching CF_RELEASES_ARGUMENT);
kern_return_t IORegistryEntryCreateCFProperties(
    io_registry_entry_t entry,
    CFMutableDictionaryRef _Nullable* _Nullable CF_RETURNS_RETAINED properties,
    CFAllocatorRef _Nullable allocator, IOOptionBits options);
kern_return_t IOObjectRelease(io_object_t object);

#ifdef __cplusplus
}
#endif
#endif
