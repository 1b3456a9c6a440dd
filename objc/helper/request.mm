#import "request.h"

#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include "conv/names.h"
#import "support.h"

namespace nnbt {
namespace {

// A value of the request: text, or a number or boolean as double.
struct Value {
  bool is_text = false;
  double number = 0;
  std::string text;
};

// The values by key; sets `problem` if the text is not a JSON object of plain values.
std::map<std::string, Value> read_object(const std::string& json, std::string& problem) {
  std::map<std::string, Value> values;
  @autoreleasepool {
    @try {
      NSData* data = [NSData dataWithBytes:json.data() length:json.size()];
      NSError* error = nil;
      id root = [NSJSONSerialization JSONObjectWithData:data
                                                options:(NSJSONReadingOptions)0
                                                  error:&error];
      if (![root isKindOfClass:[NSDictionary class]]) {
        problem = "the request is not a JSON object";
      } else {
        NSDictionary<NSString*, id>* object = root;
        for (NSString* key in object) {
          id value = object[key];
          Value& target = values[to_string(key)];
          if ([value isKindOfClass:[NSString class]]) {
            target.is_text = true;
            target.text = to_string(value);
          } else if ([value isKindOfClass:[NSNumber class]]) {
            target.number = [(NSNumber*)value doubleValue];
          } else {
            problem = "the value of " + to_string(key) + " is neither a number nor text";
          }
        }
      }
    } @catch (NSException* exception) {
      problem = "the request cannot be parsed: " + to_string(exception.reason);
    }
  }
  return values;
}

std::int64_t whole(double number) {
  if (!(std::abs(number) < 9e15) || number != std::floor(number)) {
    throw std::invalid_argument("a count in the request is not an integer");
  }
  return static_cast<std::int64_t>(number);
}

using Setter = std::function<void(HelperRequest&, const Value&)>;

Setter count(std::int64_t ConvSpec::* field) {
  return [field](HelperRequest& r, const Value& v) { r.spec.*field = whole(v.number); };
}
Setter count(std::int64_t MeasureOptions::* field) {
  return [field](HelperRequest& r, const Value& v) { r.measure.*field = whole(v.number); };
}
Setter text(std::string HelperRequest::* field) {
  return [field](HelperRequest& r, const Value& v) { r.*field = v.text; };
}
template <typename Names, typename Enum>
Setter choice(const Names& names, Enum ConvSpec::* field) {
  return [&names, field](HelperRequest& r, const Value& v) { r.spec.*field = names.value(v.text); };
}

Setter seconds(double MeasureOptions::* field) {
  return [field](HelperRequest& r, const Value& v) { r.measure.*field = v.number; };
}
Setter flag(bool HelperRequest::* field) {
  return [field](HelperRequest& r, const Value& v) { r.*field = v.number != 0; };
}

constexpr ConvNames<HelperOp, 3> kOpNames{"op",
                                          {{{"measure", HelperOp::kMeasure},
                                            {"selftest", HelperOp::kSelftest},
                                            {"info", HelperOp::kInfo}}}};

// One row per key: whether its value is text, and where it goes.
struct Key {
  bool is_text;
  Setter set;
};
const std::map<std::string, Key>& keys() {
  static const std::map<std::string, Key> table{
      {"op", {true, [](HelperRequest& r, const Value& v) { r.op = kOpNames.value(v.text); }}},
      {"variant", {true, choice(kVariantNames, &ConvSpec::variant)}},
      {"device", {true, choice(kDeviceNames, &ConvSpec::device)}},
      {"fill", {true, choice(kFillNames, &ConvSpec::fill)}},
      {"padding", {true, choice(kPaddingNames, &ConvSpec::padding)}},
      {"layout", {true, choice(kLayoutNames, &ConvSpec::layout)}},
      {"package", {true, text(&HelperRequest::package)}},
      {"save_package", {true, text(&HelperRequest::save_package)}},
      {"batch", {false, count(&ConvSpec::batch)}},
      {"size", {false, count(&ConvSpec::size)}},
      {"channels", {false, count(&ConvSpec::channels)}},
      {"layers", {false, count(&ConvSpec::layers)}},
      {"kernel", {false, count(&ConvSpec::kernel)}},
      {"enqueue", {false, count(&ConvSpec::enqueue)}},
      {"warmup", {false, count(&MeasureOptions::warmup)}},
      {"runs", {false, count(&MeasureOptions::runs)}},
      {"min_runs", {false, count(&MeasureOptions::min_runs)}},
      {"max_runs", {false, count(&MeasureOptions::max_runs)}},
      {"budget_s", {false, seconds(&MeasureOptions::budget_s)}},
      {"min_window_s", {false, seconds(&MeasureOptions::min_window_s)}},
      {"relative_interval", {false, seconds(&MeasureOptions::relative_interval)}},
      {"shared_weights",
       {false, [](HelperRequest& r, const Value& v) { r.spec.shared_weights = v.number != 0; }}},
      {"optimization_level",
       {false,
        [](HelperRequest& r, const Value& v) {
          r.spec.optimization_level = static_cast<int>(whole(v.number));
        }}},
      {"seed",
       {false, [](HelperRequest& r,
                  const Value& v) { r.spec.seed = static_cast<std::uint64_t>(whole(v.number)); }}},
      {"placement", {false, flag(&HelperRequest::placement)}},
      {"power", {false, flag(&HelperRequest::power)}},
      {"pmu", {false, flag(&HelperRequest::pmu)}},
      {"pmu_windows",
       {false, [](HelperRequest& r, const Value& v) { r.pmu_windows = whole(v.number); }}},
  };
  return table;
}

}  // namespace

HelperRequest parse_request(const std::string& json) {
  std::string problem;
  const std::map<std::string, Value> values = read_object(json, problem);
  if (!problem.empty()) throw std::invalid_argument(problem);
  HelperRequest request;
  for (const auto& [name, value] : values) {
    const auto key = keys().find(name);
    if (key == keys().end()) throw std::invalid_argument("unknown key in the request: " + name);
    if (key->second.is_text != value.is_text) {
      throw std::invalid_argument(name + (value.is_text ? " must be a number" : " must be text"));
    }
    key->second.set(request, value);
  }
  if (request.pmu && request.spec.device != ConvDevice::kAne) {
    throw std::invalid_argument(
        "pmu requires device ane: only the Neural Engine has these counters");
  }
  if (request.pmu_windows < ane::kMinWindows) {
    throw std::invalid_argument("pmu_windows must be at least " + std::to_string(ane::kMinWindows));
  }
  return request;
}

}  // namespace nnbt
