#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "ane/counters.h"

namespace {

using namespace nnbt::ane;

constexpr double kStandardMacs = 193'273'528'320.0;
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kFp16Once = (32 * kMib) + 294'912;
constexpr std::uint64_t kFp16Nominal = 778'700'758;

// Registers 10 to 23 of ResNet-50 on M1 and M4, as published.
constexpr std::array<std::uint64_t, 14> kM1 = {47'296'257, 929,           21'764'999, 6'598'489,
                                               1'021'325,  1'588'918,     58,         928'512,
                                               884'576,    38'393'741'721};
constexpr std::array<std::uint64_t, 14> kM4 = {
    45'812'147, 144,     22'123'048, 3'587'649, 61'771,  3'509'481, 7,
    2'162'077,  270'377, 121'869,    874,       963'072, 937'952,   35'423'785'983};

Deltas full(const std::array<std::uint64_t, 14>& from_10, std::size_t size) {
  Deltas deltas(size, 0U);
  for (std::size_t i = 0; i < from_10.size(); ++i) deltas[kNominalCycles + i] = from_10.at(i);
  return deltas;
}

Deltas only(std::initializer_list<std::pair<std::size_t, std::uint64_t>> values) {
  Deltas deltas(29);
  for (const auto& [index, value] : values) deltas.at(index) = value;
  return deltas;
}

double of(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

bool has_reason(const Decoded& decoded, std::string_view code) {
  return std::ranges::find(decoded.reasons, code) != decoded.reasons.end();
}

bool holds(const Decoded& decoded, std::string_view name) {
  const auto found = std::ranges::find(decoded.identities, name, &Identity::name);
  REQUIRE(found != decoded.identities.end());
  return found->holds;
}

Window window(std::uint64_t nominal, std::uint64_t lines = 10'494'464) {
  Window made{std::vector<std::uint64_t>(29, 100), std::vector<std::uint64_t>(29, 100), 10, 20.61e6,
              20.5e6};
  made.after[10] += nominal * 10;
  made.after[21] += lines * 10;
  made.after[23] += 770 * nominal * 10;
  return made;
}

Context fp16_context() {
  Context context;
  context.macs = kStandardMacs;
  context.wall_ns = 20.61e6;
  context.min_bytes = kFp16Once;
  context.max_bytes = 20 * kFp16Once;
  return context;
}

GateFacts unlocked() {
  GateFacts facts;
  facts.has_ane = facts.framework_complete = facts.loaded = true;
  facts.evaluated = facts.stats_present = true;
  facts.fully_placed = true;
  facts.regions = 1;
  facts.mask = 15;
  facts.data_bytes = 232;
  return facts;
}

}  // namespace

TEST_CASE("published fp16 run of the standard workload") {
  const Decoded decoded =
      decode(only({{10, kFp16Nominal}, {17, 36'689'674}, {21, 10'494'464}}), fp16_context());
  CHECK(decoded.status == Status::kOk);
  CHECK(of(decoded.macs_per_cycle_core) == doctest::Approx(248.2).epsilon(1e-4));
  CHECK(of(decoded.macs_per_cycle_chip) == doctest::Approx(3971.2).epsilon(1e-4));
  CHECK(of(decoded.utilisation) == doctest::Approx(0.9695).epsilon(1e-4));
  CHECK(of(decoded.ops_per_s) == doctest::Approx(18.755e12).epsilon(1e-4));
  CHECK(of(decoded.clock_hz) == doctest::Approx(2.3614e9).epsilon(1e-4));
  CHECK(decoded.layout == Layout::kDmaAt21);
  CHECK(decoded.dma_register == 21U);
  CHECK(of(decoded.dma_bytes) / kMib == doctest::Approx(640.53).epsilon(1e-5));
}

TEST_CASE("both register layouts are detected from the data") {
  for (const std::size_t size : {24U, 27U, 29U}) {
    CHECK(decode(full(kM1, size), {}).layout == Layout::kDmaAt17);
    CHECK(decode(full(kM4, size), {}).layout == Layout::kDmaAt21);
  }
  CHECK(decode(full(kM1, 27), {}).energy_units == 38'393'741'721.0);
  CHECK_FALSE(decode(full(kM4, 29), {}).dma_bytes.has_value());  // no bounds, no traffic
  CHECK(has_reason(decode(full(kM4, 29), {}), reason::kNoTrafficBounds));
  CHECK(detect_layout({}).layout == Layout::kUnknown);
}

TEST_CASE("a contradicted layout is unknown") {
  Deltas reads_above_total = full(kM4, 29);
  reads_above_total[22] = 2'000'000;
  CHECK(decode(reads_above_total, {}).layout == Layout::kUnknown);

  Deltas two_accumulators = full(kM4, 29);
  two_accumulators[19] = 35'423'785'983;
  CHECK(decode(two_accumulators, {}).layout == Layout::kUnknown);
}

TEST_CASE("stalls never exceed the nominal cycles") {
  const Decoded closes = decode(only({{10, 1000}, {13, 100}, {14, 200}, {15, 300}, {16, 400}}), {});
  CHECK(closes.shares.size() == 4);
  CHECK(holds(closes, "framework_closure"));
  CHECK_FALSE(has_reason(closes, reason::kCountersInconsistent));

  const Decoded exceeds =
      decode(only({{10, 1000}, {13, 900}, {14, 200}, {15, 300}, {16, 400}}), {});
  CHECK(exceeds.shares.empty());
  CHECK_FALSE(holds(exceeds, "framework_closure"));
  CHECK(has_reason(exceeds, reason::kCountersInconsistent));
}

TEST_CASE("peaks by precision and generation") {
  Context context;
  context.macs = 200'000;
  context.precision = Precision::kInt8;
  const auto peak = [&context](const char* architecture) {
    context.architecture = architecture;
    return of(decode(only({{10, 1000}}), context).peak_macs_per_cycle_core);
  };
  CHECK(peak("h13") == 256);
  CHECK(peak("h15g") == 256);
  CHECK(peak("h16g") == 512);
  CHECK(peak("h17c") == 512);
  CHECK(peak("h11") == 512);  // older than any measured one: assumed, with a reason
  CHECK(has_reason(decode(only({{10, 1000}}), context), reason::kPeakAssumed));
}

TEST_CASE("implausible counters leave only raw values") {
  Context context;
  context.macs = 1e6;
  const Decoded too_many = decode(only({{10, 1000}, {15, 10}}), context);
  CHECK(too_many.status == Status::kImplausible);
  CHECK_FALSE(too_many.macs_per_cycle_core.has_value());
  CHECK(too_many.shares.empty());
  CHECK(too_many.deltas[10] == 1000U);

  Context timed;
  timed.hw_ns = 1000;
  CHECK(decode(only({{10, 80'000}}), timed).status == Status::kImplausible);  // 5 GHz
  CHECK(decode(only({{10, 3'200}}), timed).status == Status::kImplausible);   // 0.2 GHz
  CHECK(decode(only({{10, 37'760}}), timed).status == Status::kOk);           // 2.36 GHz
}

TEST_CASE("numbers that the counters do not support are absent") {
  Context context;
  context.macs = 300'000;
  const Decoded above = decode(only({{10, 1000}}), context);
  CHECK(of(above.macs_per_cycle_core) == 300);
  CHECK_FALSE(above.utilisation.has_value());
  CHECK(has_reason(above, reason::kAboveMacCeiling));
  CHECK_FALSE(holds(above, "macs_within_lanes"));
  context.macs = 260'000;  // counted borders: 1.6 % above the lanes
  CHECK(holds(decode(only({{10, 1000}}), context), "macs_within_lanes"));

  CHECK(decode(only({{10, 1000}, {15, 1500}}), {}).shares.empty());
  CHECK(decode(only({{10, 1000}, {13, 1000}, {14, 1}}), {}).shares.empty());
  CHECK_FALSE(holds(decode(only({{10, 1000}, {13, 960}, {14, 0}, {15, 0}, {16, 0}}), {}),
                    "framework_closure"));

  Context slow;
  slow.wall_ns = 1000;
  slow.hw_ns = 2000;
  const Decoded backwards = decode(only({{10, 37'760}}), slow);
  CHECK_FALSE(backwards.dispatch_ns.has_value());
  CHECK(of(backwards.clock_hz) == doctest::Approx(1.18e9));  // from hardware time

  Context narrow = fp16_context();
  narrow.layout = Layout::kDmaAt21;
  narrow.max_bytes = kFp16Once;
  CHECK_FALSE(decode(only({{10, kFp16Nominal}, {21, 10'494'464}}), narrow).dma_bytes.has_value());
}

TEST_CASE("a failed hypothesis limits nothing") {
  const Decoded decoded = decode(only({{10, kFp16Nominal}, {12, 1}}), fp16_context());
  CHECK_FALSE(holds(decoded, "shifted_compute"));
  CHECK_FALSE(has_reason(decoded, reason::kCountersInconsistent));
}

TEST_CASE("a register that follows cycles in two workloads is not traffic") {
  const auto observation = [](std::uint64_t nominal, std::uint64_t clock, std::uint64_t lines,
                              double once) {
    return Observation{only({{10, nominal}, {17, clock}, {21, lines}}), kStandardMacs, once, 1e12};
  };
  const std::array both = {observation(kFp16Nominal, 36'689'674, 10'494'464, kFp16Once),
                           observation(409'477'814, 19'241'370, 5'247'232, kFp16Once / 2)};
  CHECK(detect_layout(both).layout == Layout::kDmaAt21);
  CHECK(detect_layout(std::span(both).first(1)).layout == Layout::kUnknown);
}

TEST_CASE("counters that do not change") {
  CHECK(decode(Deltas(29, 0U), {}).status == Status::kZeros);
  CHECK(decode(only({{10, 0}, {15, 5}}), {}).status == Status::kFrozen);
  const std::array zeros = {Window{std::vector<std::uint64_t>(29), std::vector<std::uint64_t>(29),
                                   1, std::nullopt, std::nullopt}};
  CHECK(decode_windows(zeros, {}).status == Status::kZeros);
  const std::array frozen = {window(0, 0)};
  CHECK(decode_windows(frozen, {}).status == Status::kFrozen);
  CHECK(decode_windows({}, {}).status == Status::kLockedNoCounters);
}

TEST_CASE("how a helper ended") {
  CHECK(helper_status(0, false, true) == Status::kOk);
  CHECK(helper_status(-9, false, false) == Status::kKilledByAmfi);
  CHECK(helper_status(137, false, false) == Status::kKilledByAmfi);
  CHECK(helper_status(-9, false, true) == Status::kHelperFailed);
  CHECK(helper_status(-6, false, true) == Status::kAborted);
  CHECK(helper_status(-9, true, false) == Status::kTimedOut);
  CHECK(helper_status(0, false, false) == Status::kHelperFailed);
}

TEST_CASE("windows: resets, other clients, unstable traffic") {
  const std::array clean = {window(kFp16Nominal), window(kFp16Nominal + 5), window(kFp16Nominal)};
  const Decoded decoded = decode_windows(clean, fp16_context());
  CHECK(decoded.windows_used == 3);
  CHECK(of(decoded.dispatch_ns) == doctest::Approx(110'000));
  CHECK(decoded.dma_register == 21U);
  CHECK_FALSE(has_reason(decoded, reason::kFewWindows));

  std::array mixed = {window(900'000'000), window(kFp16Nominal), window(kFp16Nominal)};
  mixed[2].after[0] = 0;
  const Decoded left = decode_windows(mixed, fp16_context());
  CHECK(left.windows_used == 1);
  CHECK(left.windows_shared == 1);
  CHECK(left.windows_reset == 1);
  CHECK(has_reason(left, reason::kOtherClient));
  CHECK(has_reason(left, reason::kCounterReset));
  CHECK(has_reason(left, reason::kFewWindows));

  const std::array unstable = {window(kFp16Nominal), window(kFp16Nominal, 10'300'000)};
  CHECK(has_reason(decode_windows(unstable, fp16_context()), reason::kTrafficUnstable));

  std::array lengths = {window(kFp16Nominal)};
  lengths[0].after.pop_back();
  CHECK(decode_windows(lengths, fp16_context()).status == Status::kReset);
}

TEST_CASE("invalid contexts") {
  Context context;
  context.macs = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(decode(full(kM4, 29), context), std::invalid_argument);
  Context coreless;
  coreless.cores = 0;
  CHECK_THROWS_AS(decode(full(kM4, 29), coreless), std::invalid_argument);
  CHECK_THROWS_AS(decode(Deltas(29), {}), std::invalid_argument);
  const std::array windows = {Window{}};
  CHECK_THROWS_AS(decode_windows(windows, {}), std::invalid_argument);
}

TEST_CASE("registers from raw data") {
  for (const std::size_t count : {24U, 27U, 29U, 64U}) {
    std::vector<std::uint8_t> data(count * 8);
    data[81] = 1;  // register 10, second byte
    const auto registers = parse_registers(data);
    std::vector<std::uint64_t> expected(count);
    expected[10] = 256;
    CHECK(registers == expected);
  }
  CHECK_FALSE(parse_registers(std::vector<std::uint8_t>(184)).has_value());
  CHECK_FALSE(parse_registers(std::vector<std::uint8_t>(520)).has_value());
  CHECK_FALSE(parse_registers(std::vector<std::uint8_t>(233)).has_value());
}

TEST_CASE("the gate names the first obstacle") {
  const auto with = [](auto change) {
    GateFacts facts = unlocked();
    change(facts);
    return gate_status(facts);
  };
  CHECK(gate_status(GateFacts{}) == Status::kNoAne);
  CHECK(gate_status(unlocked()) == Status::kOk);
  CHECK(with([](GateFacts& f) { f.virtual_machine = true; }) == Status::kNoAne);
  CHECK(with([](GateFacts& f) { f.framework_complete = false; }) == Status::kFrameworkMissing);
  CHECK(with([](GateFacts& f) { f.fully_placed = false; }) == Status::kNotPlacedOnAne);
  CHECK(with([](GateFacts& f) { f.fully_placed.reset(); }) == Status::kOk);
  CHECK(with([](GateFacts& f) { f.regions = 2; }) == Status::kNotPlacedOnAne);
  CHECK(with([](GateFacts& f) { f.regions = 0; }) == Status::kNoRegion);
  CHECK(with([](GateFacts& f) { f.loaded = false; }) == Status::kLoadFailed);
  CHECK(with([](GateFacts& f) { f.evaluated = false; }) == Status::kEvaluationFailed);
  CHECK(with([](GateFacts& f) { f.mask = 0; }) == Status::kLockedMaskZeroed);
  CHECK(with([](GateFacts& f) { f.mask.reset(); }) == Status::kOk);
  CHECK(with([](GateFacts& f) { f.stats_present = false; }) == Status::kLockedNoStats);
  CHECK(with([](GateFacts& f) { f.data_bytes.reset(); }) == Status::kLockedNoCounters);
  CHECK(with([](GateFacts& f) { f.data_bytes = 184; }) == Status::kLockedNoCounters);
  CHECK(with([](GateFacts& f) { f.data_bytes = 216; }) == Status::kOk);
  CHECK(with([](GateFacts& f) { f.data_bytes = 233; }) == Status::kUnknownFormat);
  CHECK(with([](GateFacts& f) { f.data_bytes = 520; }) == Status::kUnknownFormat);
}

TEST_CASE("every status has its own row") {
  for (const StatusRow& row : status_table()) {
    CHECK(status_row(row.status).name == row.name);
    CHECK(row.sentence.ends_with('.'));
  }
  CHECK(status_table().size() == static_cast<std::size_t>(Status::kHelperFailed) + 1);
}

TEST_CASE("every register row is at its index") {
  std::size_t index = 0;
  for (const RegisterRow& row : register_table()) CHECK(row.index == index++);
  CHECK(index == 29);
  CHECK(register_reading(register_table()[17], Layout::kUnknown).confidence == Confidence::kNone);
  CHECK(register_reading(register_table()[17], Layout::kDmaAt17).unit == "64-byte lines");
}
