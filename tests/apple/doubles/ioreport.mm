// Double of libIOReport: a separate library, found by dlopen and dlsym as on a Mac.
//
// NNBT_DOUBLE_ENERGY defines its channels, separated by semicolons:
// NAME,UNIT,VALUES[,TIMES[,FORMAT]]. VALUES are those of consecutive samples, separated by slashes;
// the last one repeats; "+5" grows by 5 with each sample. TIMES likewise: n (updated now), o (1.6 s
// before the library was loaded) or - (no time).
#import <Foundation/Foundation.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "fault.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr const char* kDefault =
    "CPU Energy,mJ,+50;ECPU0,mJ,+20;GPU Energy,nJ,+900000;ANE0,mJ,+35;DRAM0,mJ,+10;"
    "ANE0,24Mticks,7,n,2";

long live_objects = 0;
std::size_t samples = 0;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
const std::int64_t kOldNs = now_ns() - 1'600'000'000;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string at_sample(const std::string& script, std::size_t sample) {
  const std::vector<std::string> steps = split(script, '/');
  return steps[std::min(sample, steps.size() - 1)];
}

std::int64_t value_of(const std::string& script, std::size_t sample) {
  const std::string step = at_sample(script, sample);
  const std::int64_t number = std::stoll(step);
  return step[0] == '+' ? 1000 + number * static_cast<std::int64_t>(sample) : number;
}

}  // namespace

// Lives as long as the object that holds it; counts the dictionaries that contain it.
@interface DoubleReportPart : NSObject
@end
@implementation DoubleReportPart
- (id)init {
  ++live_objects;
  return [super init];
}
- (void)dealloc {
  --live_objects;
  [super dealloc];
}
@end

namespace {

NSMutableDictionary* counted() {
  return [NSMutableDictionary dictionaryWithObject:[[DoubleReportPart new] autorelease]
                                            forKey:@"part"];
}

// The 64 bytes of xnu's IOReportElement.
NSData* element(std::int64_t value, std::int64_t published_ns) {
  std::uint64_t fields[8] = {};
  fields[3] = static_cast<std::uint64_t>(published_ns) * 3 / 125;  // ticks of 24 MHz
  std::memcpy(&fields[4], &value, sizeof value);
  return [NSData dataWithBytes:fields length:sizeof fields];
}

NSDictionary* channel(const std::vector<std::string>& script, std::size_t sample) {
  NSMutableDictionary* made = counted();
  const int format = script.size() > 4 ? std::stoi(script[4]) : 1;
  const std::int64_t value =
      format == 1 ? value_of(script[2], sample) : std::numeric_limits<std::int64_t>::min();
  const std::string time = script.size() > 3 ? at_sample(script[3], sample) : "-";
  [made setObject:[NSString stringWithUTF8String:script[0].c_str()] forKey:@"name"];
  // Padded, as the real ones.
  [made setObject:[NSString stringWithUTF8String:(script[1] + "  ").c_str()] forKey:@"unit"];
  [made setObject:[NSNumber numberWithInt:format] forKey:@"format"];
  [made setObject:[NSNumber numberWithLongLong:value] forKey:@"value"];
  if (time != "-") {
    [made setObject:element(value, time == "o" ? kOldNs : now_ns()) forKey:@"RawElements"];
  }
  return made;
}

// Owned by the caller, as the results of Create and Copy are.
NSMutableDictionary* report(std::size_t sample) {
  const char* script = std::getenv("NNBT_DOUBLE_ENERGY");
  NSMutableArray* channels = [NSMutableArray array];
  for (const std::string& row : split(script != nullptr ? script : kDefault, ';')) {
    [channels addObject:channel(split(row, ','), sample)];
  }
  NSMutableDictionary* made = counted();
  if (!doubles::fault("no_channel_list")) [made setObject:channels forKey:@"IOReportChannels"];
  if (doubles::fault("odd_channel_list")) [made setObject:@"text" forKey:@"IOReportChannels"];
  return [made retain];
}

}  // namespace

EXPORTED id IOReportCopyChannelsInGroup(NSString* group, NSString* subgroup, std::uint64_t,
                                        std::uint64_t, std::uint64_t) {
  const bool known = [group isEqual:@"Energy Model"] && subgroup == nil;
  return known && !doubles::fault("no_channels") ? report(0) : nil;
}

EXPORTED id IOReportCreateSubscription(void*, NSMutableDictionary* wanted,
                                       NSMutableDictionary** granted, std::uint64_t, id) {
  if (doubles::fault("no_subscription") || wanted == nil) return nil;
  samples = 0;
  if (!doubles::fault("nothing_granted")) {
    *granted = [counted() retain];
    [*granted addEntriesFromDictionary:wanted];
  }
  return [DoubleReportPart new];
}

EXPORTED id IOReportCreateSamples(id subscription, NSMutableDictionary* channels, id) {
  if (doubles::fault("no_sample") || ![subscription isKindOfClass:[DoubleReportPart class]] ||
      [channels objectForKey:@"IOReportChannels"] == nil) {
    return nil;
  }
  return report(samples++);
}

EXPORTED NSString* IOReportChannelGetChannelName(NSDictionary* channel) {
  return [channel objectForKey:@"name"];
}

EXPORTED NSString* IOReportChannelGetUnitLabel(NSDictionary* channel) {
  return [channel objectForKey:@"unit"];
}

EXPORTED int IOReportChannelGetFormat(NSDictionary* channel) {
  return [[channel objectForKey:@"format"] intValue];
}

EXPORTED std::int64_t IOReportSimpleGetIntegerValue(NSDictionary* channel, std::int32_t* error) {
  if (error != nullptr) *error = 0;
  return [[channel objectForKey:@"value"] longLongValue];
}

EXPORTED long nnbt_double_ioreport_live() { return live_objects; }
