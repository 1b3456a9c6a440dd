// All C functions of private libraries that objc/ calls, through dlsym: none is linked. The types
// are written by hand; the conformance check compares them, and the names in the built binaries,
// with tests/apple/facts/private_functions.json, which gives a source for each.
//
// CoreFoundation objects are declared as their toll-free bridged classes, so that ARC releases the
// results of Create and Copy functions. Trailing arguments of unknown meaning are null.
#pragma once

#import <Foundation/Foundation.h>

#include <cstdint>

namespace nnbt {

// Group, subgroup and three zeros. Returns a mutable dictionary.
typedef id _Nullable (*IOReportCopyChannelsInGroup)(NSString* _Nonnull, NSString* _Nullable,
                                                    uint64_t, uint64_t, uint64_t)
    __attribute__((ns_returns_retained));
// Null, the requested channels, the granted channels (retained), 0, null.
typedef id _Nullable (*IOReportCreateSubscription)(void* _Nullable, id _Nonnull,
                                                   __strong id _Nullable* _Nonnull, uint64_t,
                                                   id _Nullable)
    __attribute__((ns_returns_retained));
typedef id _Nullable (*IOReportCreateSamples)(id _Nonnull, id _Nonnull, id _Nullable)
    __attribute__((ns_returns_retained));
typedef NSString* _Nullable (*IOReportChannelGetChannelName)(id _Nonnull);
typedef NSString* _Nullable (*IOReportChannelGetUnitLabel)(id _Nonnull);
typedef int (*IOReportChannelGetFormat)(id _Nonnull);
// Some declare the second argument as an index, others as a pointer to an error; null works for
// both.
typedef int64_t (*IOReportSimpleGetIntegerValue)(id _Nonnull, int32_t* _Nullable);

}  // namespace nnbt
