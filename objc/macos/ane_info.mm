#include "ane_info.h"

#import <IOKit/IOKitLib.h>

#include <dlfcn.h>
#include <objc/runtime.h>
#include <sys/sysctl.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#import "private_api.h"
#import "support.h"

namespace nnbt::ane {
namespace {

constexpr const char* kFramework =
    "/System/Library/PrivateFrameworks/AppleNeuralEngine.framework/AppleNeuralEngine";

// The first name matched on every generation seen, M1 to M5; newer drivers have the second.
constexpr std::array kDriverClasses = {"H11ANEIn", "AppleH16ANEInterface"};

// Classes and methods without which nothing can be replayed; others are checked where they are
// used.
struct Required {
  NSString* _Nonnull class_name;
  bool of_class;
  SEL _Nonnull selector;
};

std::vector<Required> required() {
  return {
      {@"_ANEDeviceInfo", true, @selector(hasANE)},
      {@"_ANEClient", true, @selector(sharedConnection)},
      {@"_ANEClient", false, @selector(loadModel:options:qos:error:)},
      {@"_ANEClient", false, @selector(evaluateWithModel:options:request:qos:error:)},
      {@"_ANEClient", false, @selector(unloadModel:options:qos:error:)},
      {@"_ANEModel", true, @selector(modelAtURL:key:)},
      {@"_ANEModel", false, @selector(modelAttributes)},
      {@"_ANEIOSurfaceObject", true, @selector(objectWithIOSurface:)},
      {@"_ANEPerformanceStatsIOSurface", true, @selector(objectWithIOSurface:statType:)},
      {@"_ANEPerformanceStats", false, @selector(hwExecutionTime)},
      {@"_ANEPerformanceStats", false, @selector(perfCounterData)},
      {@"_ANERequest", true,
       @selector(requestWithInputs:inputIndices:outputs:outputIndices:perfStats:procedureIndex:)},
      {@"_ANERequest", false, @selector(validate)},
      {@"_ANERequest", false, @selector(perfStats)},
  };
}

// Each missing class once, or its missing methods as "+[class selector]".
std::vector<std::string> missing_parts() {
  std::vector<std::string> missing;
  for (const Required& row : required()) {
    const std::string name = to_string(row.class_name);
    Class found = NSClassFromString(row.class_name);
    if (found == nil) {
      if (missing.empty() || missing.back() != name) missing.push_back(name);
      continue;
    }
    const BOOL answers = row.of_class ? [(id)found respondsToSelector:row.selector]
                                      : [found instancesRespondToSelector:row.selector];
    if (answers) continue;
    missing.push_back((row.of_class ? "+[" : "-[") + name + " " + sel_getName(row.selector) + "]");
  }
  return missing;
}

std::optional<std::string> text_of(id _Nullable value) {
  if (![value isKindOfClass:[NSString class]]) return std::nullopt;
  return to_string(value);
}

std::optional<long long> number_of(id _Nullable value) {
  if (![value isKindOfClass:[NSNumber class]]) return std::nullopt;
  return [(NSNumber*)value longLongValue];
}

NSDictionary<NSString*, id>* _Nullable dictionary_of(id _Nullable value) {
  return [value isKindOfClass:[NSDictionary class]] ? value : nil;
}

// Properties of the driver's node in the IORegistry; nil if there is none.
NSDictionary<NSString*, id>* _Nullable driver_properties() {
  for (const char* name : kDriverClasses) {
    // The call consumes the dictionary.
    const io_service_t service =
        IOServiceGetMatchingService(MACH_PORT_NULL, IOServiceMatching(name));
    if (service == IO_OBJECT_NULL) continue;
    CFMutableDictionaryRef properties = nullptr;
    const kern_return_t result =
        IORegistryEntryCreateCFProperties(service, &properties, kCFAllocatorDefault, 0);
    IOObjectRelease(service);
    if (result == KERN_SUCCESS && properties != nullptr) {
      return (__bridge_transfer NSDictionary*)properties;
    }
  }
  return nil;
}

std::optional<std::string> firmware_of(NSDictionary<NSString*, id>* _Nullable properties) {
  const auto loaded = number_of(properties[@"FirmwareLoaded"]);
  if (!loaded) return std::nullopt;
  std::string text = *loaded != 0 ? "loaded" : "not loaded";
  NSDictionary<NSString*, id>* device = dictionary_of(properties[@"DeviceProperties"]);
  const auto major = number_of(device[@"ANEDevicePropertyANEVersion"]);
  const auto minor = number_of(device[@"ANEDevicePropertyANEMinorVersion"]);
  if (major && minor) {
    text += ", engine version " + std::to_string(*major) + "." + std::to_string(*minor);
  }
  return text;
}

std::optional<std::string> system_text(const char* _Nonnull name) {
  std::array<char, 1024> buffer{};
  std::size_t size = buffer.size() - 1;
  if (sysctlbyname(name, buffer.data(), &size, nullptr, 0) != 0) return std::nullopt;
  return buffer.data();
}

bool system_flag(const char* _Nonnull name) {
  std::int32_t value = 0;
  std::size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}

// libSystem has this function, but no SDK header declares it. 0 is the default state of a Mac.
std::optional<std::string> integrity_protection() {
  using GetConfiguration = int (*)(std::uint32_t*);
  const auto get = reinterpret_cast<GetConfiguration>(dlsym(RTLD_DEFAULT, "csr_get_active_config"));
  std::uint32_t allowed = 0;
  if (get == nullptr || get(&allowed) != 0) return std::nullopt;
  if (allowed == 0) return "enabled";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "reduced (allows 0x%x)", allowed);
  return text.data();
}

std::optional<std::size_t> positive(long long number) {
  if (number <= 0) return std::nullopt;
  return static_cast<std::size_t>(number);
}

// Cores of all engines together: each die has its own.
std::optional<std::size_t> cores_of(Class _Nullable framework,
                                    NSDictionary<NSString*, id>* _Nullable device) {
  if ([(id)framework respondsToSelector:@selector(numANEs)] &&
      [(id)framework respondsToSelector:@selector(numANECores)]) {
    Class<NNBTAneDevices> devices = static_cast<Class<NNBTAneDevices>>(framework);
    return positive(static_cast<long long>([devices numANEs]) * [devices numANECores]);
  }
  const auto engines = number_of(device[@"ANEDevicePropertyNumANEs"]);
  const auto cores = number_of(device[@"ANEDevicePropertyNumANECores"]);
  return engines && cores ? positive(*engines * *cores) : std::nullopt;
}

Device device_of(NSDictionary<NSString*, id>* _Nullable properties) {
  // The library is in the shared cache; the classes below show whether loading it worked.
  dlopen(kFramework, RTLD_NOW | RTLD_LOCAL);
  Device out;
  out.missing = missing_parts();
  out.virtual_machine = system_flag("kern.hv_vmm_present");
  out.present = properties != nil;
  NSDictionary<NSString*, id>* device = dictionary_of(properties[@"DeviceProperties"]);
  out.architecture = text_of(device[@"ANEDevicePropertyTypeANEArchitectureTypeStr"]);

  Class framework = NSClassFromString(@"_ANEDeviceInfo");
  Class<NNBTAneDevices> devices = static_cast<Class<NNBTAneDevices>>(framework);
  if ([(id)framework respondsToSelector:@selector(hasANE)]) out.present = [devices hasANE];
  if ([(id)framework respondsToSelector:@selector(isVirtualMachine)]) {
    out.virtual_machine = out.virtual_machine || [devices isVirtualMachine];
  }
  if ([(id)framework respondsToSelector:@selector(aneArchitectureType)]) {
    if (auto name = text_of([devices aneArchitectureType])) out.architecture = std::move(name);
  }
  out.cores = cores_of(framework, device);
  return out;
}

}  // namespace

Device read_device() {
  Device out;
  guarded(
      "querying the device",
      [&] {
        out = device_of(driver_properties());
        return Failure{};
      },
      "AppleNeuralEngine");
  return out;
}

Info read_info() {
  Info out;
  guarded(
      "querying the device",
      [&] {
        NSDictionary<NSString*, id>* properties = driver_properties();
        out.device = device_of(properties);
        out.driver = text_of(properties[@"CFBundleIdentifier"]);
        out.firmware = firmware_of(properties);
        return Failure{};
      },
      "AppleNeuralEngine");
  out.boot_args = system_text("kern.bootargs");
  out.sip = integrity_protection();
  return out;
}

}  // namespace nnbt::ane
