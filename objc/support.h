// Used by every Objective-C++ file: string conversion, and the one place where an NSException or a
// failure inside an autorelease pool becomes a C++ exception.
#pragma once

#import <Foundation/Foundation.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "base/unsupported.h"

#if !__has_feature(objc_arc)
#error "The Objective-C++ sources require automatic reference counting (-fobjc-arc)."
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

// Result of a guarded body; an empty sentence means success.
struct Failure {
  std::string sentence;
  bool unsupported = false;
};
inline Failure unsupported(std::string sentence) { return {std::move(sentence), true}; }

// Runs `body`, which returns a Failure, in its own autorelease pool. C++ exceptions are thrown only
// outside the pool and the handler, because not every runtime unwinds these.
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
