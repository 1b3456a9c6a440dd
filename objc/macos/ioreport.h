// The energy counters of IOReport, which need no root. Undocumented: everything is looked up at run
// time, and whatever is missing becomes a state with a sentence.
#pragma once

#import <Foundation/Foundation.h>

#include <optional>
#include <string>

#include "power/rails.h"
#import "private_functions.h"

namespace nnbt {

// A subscription costs 236 KB that the system never gives back, so a process makes only one.
class IoReport {
 public:
  IoReport();

  // How far it got: kOk once subscribed. Sampling may still be denied.
  EnergySource source() const { return source_; }
  const std::string& problem() const { return problem_; }

  // The counters now; none where there is no subscription, or it hands out nothing.
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
