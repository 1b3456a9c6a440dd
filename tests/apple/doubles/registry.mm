// Doubles of CoreFoundation (toll-free bridged to GNUstep), of IOKit's registry, and of the calls
// that report what a process may do.
#import <Foundation/Foundation.h>
#import <IOKit/IOKitLib.h>
#import <Security/SecTask.h>

#include "ane_script.h"
#include "graph_state.h"

using namespace doubles;

namespace {

constexpr io_service_t kService = 7;

NSDictionary* device_properties() {
  const AneScript script = ane_script();
  return [NSDictionary
      dictionaryWithObjectsAndKeys:[NSString stringWithUTF8String:script.architecture.c_str()],
                                   @"ANEDevicePropertyTypeANEArchitectureTypeStr",
                                   [NSNumber numberWithUnsignedInt:script.cores],
                                   @"ANEDevicePropertyNumANECores",
                                   [NSNumber numberWithUnsignedInt:script.engines],
                                   @"ANEDevicePropertyNumANEs", [NSNumber numberWithInt:208],
                                   @"ANEDevicePropertyANEVersion", [NSNumber numberWithInt:17],
                                   @"ANEDevicePropertyANEMinorVersion", nil];
}

}  // namespace

extern "C" {
const CFAllocatorRef kCFAllocatorDefault = nullptr;
const CFBooleanRef kCFBooleanTrue = (CFBooleanRef) @"the one true boolean";

void CFRelease(CFTypeRef object) { [(id)object release]; }

CFMutableDictionaryRef IOServiceMatching(const char* name) {
  return (CFMutableDictionaryRef)[[NSMutableDictionary alloc]
      initWithObjectsAndKeys:[NSString stringWithUTF8String:name], @"IOProviderClass", nil];
}

io_service_t IOServiceGetMatchingService(mach_port_t port, CFDictionaryRef matching) {
  NSString* driver = fault("newer_driver") ? @"AppleH16ANEInterface" : @"H11ANEIn";
  NSString* wanted = [(NSDictionary*)matching objectForKey:@"IOProviderClass"];
  const bool found = port == MACH_PORT_NULL && !fault("no_driver") && [wanted isEqual:driver];
  [(id)matching release];
  if (found) count_object(1);
  return found ? kService : IO_OBJECT_NULL;
}

kern_return_t IORegistryEntryCreateCFProperties(io_registry_entry_t entry,
                                                CFMutableDictionaryRef* properties,
                                                CFAllocatorRef allocator, IOOptionBits options) {
  (void)allocator, (void)options;
  if (entry != kService) return 1;
  *properties = (CFMutableDictionaryRef)[[NSMutableDictionary alloc]
      initWithObjectsAndKeys:@"com.apple.driver.AppleH16ANEInterface", @"CFBundleIdentifier",
                             [NSNumber numberWithBool:YES], @"FirmwareLoaded", device_properties(),
                             @"DeviceProperties", nil];
  return KERN_SUCCESS;
}

kern_return_t IOObjectRelease(io_object_t object) {
  if (object == kService) count_object(-1);
  return KERN_SUCCESS;
}

SecTaskRef SecTaskCreateFromSelf(CFAllocatorRef allocator) {
  (void)allocator;
  return fault("no_task") ? nullptr : (SecTaskRef)[NSObject new];
}

CFTypeRef SecTaskCopyValueForEntitlement(SecTaskRef task, CFStringRef entitlement,
                                         CFErrorRef* error) {
  (void)task;
  if (fault("entitlement_error")) {
    *error = (CFErrorRef)[[NSError alloc] initWithDomain:@"SecTask" code:1 userInfo:nil];
    return nullptr;
  }
  NSString* counters = @"com.apple.ane.hardware-counters";
  if (!fault("entitled") || ![(NSString*)entitlement isEqual:counters]) return nullptr;
  return (CFTypeRef)[(id)kCFBooleanTrue retain];
}

// Looked up by dlsym, so a system may lack it.
__attribute__((visibility("default"))) int csr_get_active_config(uint32_t* allowed) {
  *allowed = fault("sip_off") ? 0x6F : 0;
  return fault("no_csr") ? 1 : 0;
}
}
