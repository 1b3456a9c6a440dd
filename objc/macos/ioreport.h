// The energy counters of IOReport, which do not require root. Undocumented: everything is looked up
// at run time, and whatever is missing becomes a state with a sentence.
#pragma once

#import <Foundation/Foundation.h>

#include <optional>
#include <string>

#include "power/rails.h"
#import "private_functions.h"

namespace nnbt {

// A subscription takes 236 KB that the system never frees, so a process makes only one.
class IoReport {
 public:
  IoReport();

  // The state: kOk if subscribed, although sampling may still be denied.
  EnergySource source() const { return source_; }
  const std::string& problem() const { return problem_; }

  // The current counters; nullopt without a subscription, or if it returns nothing.
  std::optional<EnergySample> sample();

 private:
  bool find_functions();
  void subscribe();
  EnergyCounter counter(NSDictionary* _Nonnull channel) const;

  EnergySource source_ = EnergySource::kAbsent;
  std::string problem_;
  id _Nullable subscription_ = nil;
  id _Nullable channels_ = nil;
  IOReportCopyChannelsInGroup _Nullable copy_channels_ = nullptr;
  IOReportCreateSubscription _Nullable create_subscription_ = nullptr;
  IOReportCreateSamples _Nullable create_samples_ = nullptr;
  IOReportChannelGetChannelName _Nullable channel_name_ = nullptr;
  IOReportChannelGetUnitLabel _Nullable unit_label_ = nullptr;
  IOReportChannelGetFormat _Nullable format_ = nullptr;
  IOReportSimpleGetIntegerValue _Nullable integer_value_ = nullptr;
};

}  // namespace nnbt
