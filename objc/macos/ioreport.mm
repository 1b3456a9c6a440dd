#import "ioreport.h"

#include <dlfcn.h>
#include <mach/mach_time.h>

#include <cstring>

#import "support.h"

namespace nnbt {
namespace {

constexpr const char* kLibrary = "/usr/lib/libIOReport.dylib";
constexpr int kSimpleFormat = 1;  // other formats are garbage when read as an integer
// IOReportElement of xnu's IOReportTypes.h: provider, channel, type, mach_absolute_time(), values.
constexpr std::size_t kTimestampOffset = 24;

std::int64_t nanoseconds(std::uint64_t ticks) {
  mach_timebase_info_data_t base{};
  if (mach_timebase_info(&base) != 0 || base.denom == 0) return 0;
  return static_cast<std::int64_t>(ticks * base.numer / base.denom);
}

NSArray* _Nullable channel_list(id _Nullable report) {
  if (![report isKindOfClass:[NSDictionary class]]) return nil;
  id list = ((NSDictionary*)report)[@"IOReportChannels"];
  return [list isKindOfClass:[NSArray class]] ? list : nil;
}

// When the driver updated the value; 0 if unknown.
std::int64_t published_ns(NSDictionary* _Nonnull channel) {
  id elements = channel[@"RawElements"];
  if (![elements isKindOfClass:[NSData class]]) return 0;
  NSData* data = elements;
  std::uint64_t ticks = 0;
  if (data.length < kTimestampOffset + sizeof ticks) return 0;
  std::memcpy(&ticks, static_cast<const char*>(data.bytes) + kTimestampOffset, sizeof ticks);
  return nanoseconds(ticks);
}

template <typename Function>
bool find(void* _Nonnull library, const char* _Nonnull name, Function& function,
          std::string& problem) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) problem = std::string("libIOReport of this OS lacks ") + name;
  return function != nullptr;
}

}  // namespace

IoReport::IoReport() {
  @autoreleasepool {
    if (find_functions()) subscribe();
  }
}

bool IoReport::find_functions() {
  // Never closed: the library keeps state for the subscription.
  void* library = dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    problem_ = std::string("IOReport cannot be loaded: ") + (why != nullptr ? why : kLibrary);
    return false;
  }
  return find(library, "IOReportCopyChannelsInGroup", copy_channels_, problem_) &&
         find(library, "IOReportCreateSubscription", create_subscription_, problem_) &&
         find(library, "IOReportCreateSamples", create_samples_, problem_) &&
         find(library, "IOReportChannelGetChannelName", channel_name_, problem_) &&
         find(library, "IOReportChannelGetUnitLabel", unit_label_, problem_) &&
         find(library, "IOReportChannelGetFormat", format_, problem_) &&
         find(library, "IOReportSimpleGetIntegerValue", integer_value_, problem_);
}

void IoReport::subscribe() {
  id wanted = copy_channels_(@"Energy Model", nil, 0, 0, 0);
  if (channel_list(wanted).count == 0) {
    problem_ = "IOReport lists no energy channels (virtual machines have none)";
    return;
  }
  id granted = nil;
  subscription_ = create_subscription_(nullptr, wanted, &granted, 0, nil);
  if (subscription_ == nil) {
    source_ = EnergySource::kDenied;
    problem_ = "IOReport refused the subscription to its energy channels";
    return;
  }
  channels_ = granted != nil ? granted : wanted;
  source_ = EnergySource::kOk;
}

EnergyCounter IoReport::counter(NSDictionary* _Nonnull channel) const {
  return {.channel = to_string(channel_name_(channel)),
          .unit = to_string(unit_label_(channel)),
          .value = integer_value_(channel, nullptr),
          .published_ns = published_ns(channel)};
}

std::optional<EnergySample> IoReport::sample() {
  if (source_ != EnergySource::kOk) return std::nullopt;
  std::optional<EnergySample> sample;
  @autoreleasepool {
    id report = create_samples_((id _Nonnull)subscription_, (id _Nonnull)channels_, nil);
    NSArray* list = channel_list(report);
    if (list != nil) {
      sample.emplace();
      for (id channel in list) {
        if (![channel isKindOfClass:[NSDictionary class]]) continue;
        if (format_(channel) == kSimpleFormat) sample->push_back(counter(channel));
      }
    }
  }
  return sample;
}

}  // namespace nnbt
