// What every Objective-C++ file here needs: strings across the border, and the one place where an
// NSException or a failure inside an autorelease pool becomes a C++ exception.
#pragma once

#import <Foundation/Foundation.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "base/unsupported.h"

#if !__has_feature(objc_arc)
#error "The Objective-C++ sources are written for automatic reference counting (-fobjc-arc)."
#endif

namespace nnbt {

inline std::string to_string(NSString* _Nullable text) {
  const char* characters = text.UTF8String;
  return characters != nullptr ? characters : "";
}

inline NSString* _Nonnull to_ns(const std::string& text) {
  NSString* result = [NSString stringWithUTF8String:text.c_str()];
  return result != nil ? result : @"";
}

// How a guarded body ends: an empty sentence is success.
struct Failure {
  std::string sentence;
  bool unsupported = false;
};
inline Failure unsupported(std::string sentence) { return {std::move(sentence), true}; }

// Runs `body` (returns a Failure) in an autorelease pool of its own. C++ exceptions are thrown only
// after the pool and the handler are left: neither is unwound by them on every runtime.
template <typename Body>
void guarded(const char* _Nonnull action, Body&& body,
             const char* _Nonnull framework = "MPSGraph") {
  Failure failure;
  @autoreleasepool {
    @try {
      failure = body();
    } @catch (NSException* exception) {
      failure.sentence = std::string(framework) + " raised " + to_string(exception.name) +
                         " while " + action + ": " + to_string(exception.reason);
    }
  }
  if (failure.sentence.empty()) return;
  if (failure.unsupported) throw Unsupported(failure.sentence);
  throw std::runtime_error(failure.sentence);
}

}  // namespace nnbt
