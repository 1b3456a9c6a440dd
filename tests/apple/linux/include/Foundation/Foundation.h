// GNUstep's Foundation, plus what Apple's clang expects and GCC's libobjc headers lack.
#pragma once
#if __has_feature(objc_arc)
// In the ObjFW ABI, a weak class is looked up by name instead of by a symbol that GNUstep lacks.
#include <GNUstepBase/GSVersionMacros.h>
#undef GS_EXPORT_CLASS
#define GS_EXPORT_CLASS __attribute__((weak_import))
#endif
#include_next <Foundation/Foundation.h>
// GCC's YES is a char, which neither @YES nor BOOL literals accept.
#undef YES
#undef NO
#define YES __objc_yes
#define NO __objc_no
#ifndef NS_ASSUME_NONNULL_BEGIN
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#endif
#ifndef NS_RETURNS_RETAINED
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#endif
#ifndef FOUNDATION_EXPORT
#define FOUNDATION_EXPORT extern "C"
#endif

// Newer than GNUstep's NSProcessInfo; implemented by the doubles.
typedef NSInteger NSProcessInfoThermalState;
@interface NSProcessInfo (NNBTNewer)
@property(readonly) NSProcessInfoThermalState thermalState;
@property(readonly, getter=isLowPowerModeEnabled) BOOL lowPowerModeEnabled;
@end
