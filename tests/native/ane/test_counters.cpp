// What Python cannot reach; the arithmetic is tested in tests/test_ane.py.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ane/counters.h"

namespace {

using namespace nnbt::ane;

// Registers 10 to 23 of ResNet-50 on M4, as published.
constexpr std::uint64_t kM4[] = {45'812'147, 144,     22'123'048, 3'587'649,     61'771,
                                 3'509'481,  7,       2'162'077,  270'377,       121'869,
                                 874,        963'072, 937'952,    35'423'785'983};

Deltas resnet() {
  Deltas deltas(29, 0U);
  std::size_t index = kNominalCycles;
  for (const std::uint64_t change : kM4) deltas[index++] = change;
  return deltas;
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

TEST_CASE("a contradicted layout is unknown") {
  Deltas reads_above_total = resnet();
  reads_above_total[22] = 2'000'000;
  CHECK(decode(reads_above_total, {}).layout == Layout::kUnknown);

  Deltas two_accumulators = resnet();
  two_accumulators[19] = 35'423'785'983;
  CHECK(decode(two_accumulators, {}).layout == Layout::kUnknown);
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
