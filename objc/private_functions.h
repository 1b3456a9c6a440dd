// Every C function of a private library that objc/ calls, by dlsym: none is linked. Types are by
// hand; the conformance check compares them, and the names in the built binaries, with
// tests/apple/facts/private_functions.json, which names a source for each.
//
// CoreFoundation objects stand here as their toll-free twins, so that ARC releases what Create and
// Copy return. Last arguments that nobody knows a use for are null.
#pragma once

#import <Foundation/Foundation.h>

#include <cstdint>

namespace nnbt {

// Group, subgroup and three zeros. The result is a mutable dictionary.
typedef id _Nullable (*IOReportCopyChannelsInGroup)(NSString* _Nonnull, NSString* _Nullable,
                                                    uint64_t, uint64_t, uint64_t)
    __attribute__((ns_returns_retained));
// Null, the wanted channels, those that were granted (retained), 0, null.
typedef id _Nullable (*IOReportCreateSubscription)(void* _Nullable, id _Nonnull,
                                                   __strong id _Nullable* _Nonnull, uint64_t,
                                                   id _Nullable)
    __attribute__((ns_returns_retained));
typedef id _Nullable (*IOReportCreateSamples)(id _Nonnull, id _Nonnull, id _Nullable)
    __attribute__((ns_returns_retained));
typedef NSString* _Nullable (*IOReportChannelGetChannelName)(id _Nonnull);
typedef NSString* _Nullable (*IOReportChannelGetUnitLabel)(id _Nonnull);
typedef int (*IOReportChannelGetFormat)(id _Nonnull);
// Some declare the second argument as an index, others as a pointer to an error: null serves both.
typedef int64_t (*IOReportSimpleGetIntegerValue)(id _Nonnull, int32_t* _Nullable);

}  // namespace nnbt
