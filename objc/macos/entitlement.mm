#include "entitlement.h"

#import <Foundation/Foundation.h>
#import <Security/SecTask.h>

namespace nnbt::ane {

std::optional<bool> counters_entitled() {
  std::optional<bool> entitled;
  @autoreleasepool {
    SecTaskRef task = SecTaskCreateFromSelf(kCFAllocatorDefault);
    if (task == nullptr) return entitled;
    CFErrorRef error = nullptr;
    CFTypeRef value = SecTaskCopyValueForEntitlement(
        task, (__bridge CFStringRef) @"com.apple.ane.hardware-counters", &error);
    // No value and no error: the signature does not contain it.
    if (value != nullptr || error == nullptr) entitled = value == kCFBooleanTrue;
    if (value != nullptr) CFRelease(value);
    if (error != nullptr) CFRelease(error);
    CFRelease(task);
  }
  return entitled;
}

}  // namespace nnbt::ane
