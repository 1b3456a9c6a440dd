#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "power/rails.h"

namespace {

using nnbt::counts_per_joule;
using nnbt::EnergyCounter;
using nnbt::EnergySample;
using nnbt::EnergySource;
using nnbt::EnergyVerdict;
using nnbt::judge_energy;

constexpr std::int64_t kSecond = 1'000'000'000;

// One counter at the start and end of a window.
struct Row {
  std::string channel;
  std::string unit;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

EnergyVerdict judged(const std::vector<Row>& rows, std::int64_t window_ns = kSecond) {
  EnergySample begin;
  EnergySample end;
  for (const Row& row : rows) {
    begin.push_back({row.channel, row.unit, row.begin, row.begin_ns});
    end.push_back({row.channel, row.unit, row.end, row.end_ns});
  }
  return judge_energy(begin, end, window_ns);
}

// A live CPU rail, so that other rails are considered.
const Row kAlive{"CPU Energy", "mJ", 1000, 3500};

bool says(const EnergyVerdict& verdict, std::string_view words) {
  INFO(verdict.detail);
  return verdict.detail.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("only mJ, uJ and nJ are energy units") {
  CHECK(counts_per_joule("mJ") == 1e3);
  CHECK(counts_per_joule("uJ") == 1e6);
  CHECK(counts_per_joule(" nJ ") == 1e9);
  for (const char* other : {"", "J", "mj", "m J", "mJ/s", "24Mticks", "MJ"}) {
    CAPTURE(other);
    CHECK_FALSE(counts_per_joule(other).has_value());
  }
}

TEST_CASE("each unit is converted to joules") {
  const EnergyVerdict verdict = judged({kAlive,
                                        {"GPU Energy", "nJ", 7, 1'250'000'007},
                                        {"ANE0", " mJ ", 100, 450},
                                        {"DRAM0", "uJ", 5, 300'005}});
  CHECK(verdict.source == EnergySource::kOk);
  REQUIRE(verdict.energy_j.size() == 4);
  CHECK(verdict.energy_j.at("CPU") == doctest::Approx(2.5));
  CHECK(verdict.energy_j.at("GPU") == doctest::Approx(1.25));
  CHECK(verdict.energy_j.at("ANE") == doctest::Approx(0.35));
  CHECK(verdict.energy_j.at("DRAM") == doctest::Approx(0.3));
  CHECK(says(verdict, "ANE is ANE0"));
}

TEST_CASE("a package total and its parts are never added up") {
  const EnergyVerdict package = judged({{"DIE_0_CPU Energy", "mJ", 0, 100},
                                        {"CPU Energy", "mJ", 0, 300},
                                        {"DIE_1_CPU Energy", "mJ", 0, 200},
                                        {"GPU0", "mJ", 0, 41},
                                        {"GPU Energy", "nJ", 0, 40'000'000},
                                        {"ANE", "mJ", 0, 9},
                                        {"ANE0", "mJ", 0, 8}});
  CHECK(package.energy_j.at("CPU") == doctest::Approx(0.3));
  CHECK(package.energy_j.at("GPU") == doctest::Approx(0.04));
  CHECK(package.energy_j.at("ANE") == doctest::Approx(0.009));
}

TEST_CASE("the dies of a package without a total are added up") {
  const EnergyVerdict dies = judged({{"DIE_0_CPU Energy", "mJ", 0, 100},
                                     {"DIE_1_CPU Energy", "mJ", 0, 200},
                                     {"ANE0_0", "mJ", 0, 30},
                                     {"ANE0_1", "mJ", 0, 12},
                                     {"GPU0_0", "mJ", 0, 5},
                                     {"GPU SRAM0_0", "mJ", 0, 1}});
  CHECK(dies.energy_j.at("CPU") == doctest::Approx(0.3));
  CHECK(dies.energy_j.at("ANE") == doctest::Approx(0.042));
  CHECK(dies.energy_j.at("GPU") == doctest::Approx(0.005));
  CHECK(dies.energy_j.at("GPU SRAM") == doctest::Approx(0.001));
  CHECK(says(dies, "CPU is DIE_0_CPU Energy + DIE_1_CPU Energy"));
}

TEST_CASE("cores, caches and other blocks are not rails") {
  const std::vector<Row> parts{{"ECPU0", "mJ", 0, 5},          {"PACC0_CPU", "mJ", 0, 5},
                               {"EACC_CPU0_SRAM", "mJ", 0, 5}, {"ANE0_SRAM", "mJ", 0, 5},
                               {"ANE_", "mJ", 0, 5},           {"DRAM0_", "mJ", 0, 5},
                               {"ISP0", "mJ", 0, 5},           {"apciec0 Energy", "uJ", 0, 5},
                               {"PCPU1DTL3a", "mJ", 0, 5},     {"", "mJ", 0, 5}};
  const EnergyVerdict verdict = judged(parts);
  CHECK(verdict.source == EnergySource::kAbsent);
  CHECK(says(verdict, "none of 10 energy channels belongs to a known rail"));
  CHECK(judged({}).source == EnergySource::kAbsent);
}

TEST_CASE("only a rail with an unknown unit or a counter that went backwards is left out") {
  const EnergyVerdict verdict = judged({kAlive,
                                        {"ANE0", "mJ", 450, 100},
                                        {"ANE1", "mJ", 100, 450},
                                        {"DRAM0", "kJ", 0, 1},
                                        {"GPU Energy", "nJ", 0, 1000}});
  CHECK(verdict.source == EnergySource::kOk);
  CHECK(verdict.energy_j.size() == 2);
  CHECK(verdict.energy_j.contains("CPU"));
  CHECK(verdict.energy_j.contains("GPU"));
  CHECK(says(verdict, "ANE is left out: ANE0 went backwards"));
  CHECK(says(verdict, "DRAM is left out: DRAM0 has the unknown unit \"kJ\""));
}

TEST_CASE("garbage values are rejected, not added up") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(says(judged({kAlive, {"ANE", "mJ", 5, kLeast}}), "ANE implies more than 1 kW"));
  CHECK(says(judged({kAlive, {"ANE", "mJ", 0, kLeast}}), "ANE went backwards"));
  CHECK(says(judged({kAlive, {"ANE", "mJ", kLeast, kMost}}), "ANE went backwards"));
  CHECK(says(judged({kAlive, {"ANE", "mJ", 0, 1'000'001}}), "ANE implies more than 1 kW"));
  CHECK(judged({kAlive, {"ANE", "mJ", 0, 999'999}}).energy_j.contains("ANE"));
}

TEST_CASE("a CPU counter that does not change is frozen") {
  const EnergyVerdict verdict =
      judged({{"CPU Energy", "mJ", 70, 70}, {"ANE0", "mJ", 9, 9}, {"GPU Energy", "nJ", 1, 9}});
  CHECK(verdict.source == EnergySource::kFrozenZero);
  CHECK(verdict.energy_j.empty());
  CHECK(says(verdict, "the counters of CPU did not change in 1.000 s"));
  CHECK(says(verdict, "this system hides them"));
  CHECK(says(verdict, "GPU changed, but is left out"));
}

TEST_CASE("an idle ANE with a live CPU is zero, not frozen") {
  const EnergyVerdict verdict = judged({kAlive, {"ANE0", "mJ", 9, 9}});
  CHECK(verdict.source == EnergySource::kOk);
  CHECK(verdict.energy_j.at("ANE") == 0.0);
}

TEST_CASE("without a CPU rail, counters are frozen if no rail changes") {
  CHECK(judged({{"ANE0", "mJ", 9, 9}, {"DRAM0", "mJ", 9, 9}}).source == EnergySource::kFrozenZero);
  CHECK(judged({{"ANE0", "mJ", 9, 9}, {"DRAM0", "mJ", 9, 10}}).source == EnergySource::kOk);
}

TEST_CASE("a window too short for the counters proves nothing") {
  const std::vector<Row> still{{"CPU Energy", "mJ", 70, 70}};
  const EnergyVerdict brief = judged(still, 99'999'999);
  CHECK(brief.source == EnergySource::kOk);
  CHECK(brief.energy_j.empty());
  CHECK(says(brief, "longer than 0.100 s"));
  CHECK(judged(still, 100'000'000).source == EnergySource::kFrozenZero);
}

TEST_CASE("update times distinguish hidden counters from rarely updated ones") {
  CHECK(says(judged({{"CPU Energy", "mJ", 7, 7, 5, 5 + kSecond}}), "were updated"));
  CHECK(says(judged({{"CPU Energy", "mJ", 7, 7, 5, 5}}), "were not updated in that time"));
}

TEST_CASE("energy that covers another span than the window is left out") {
  const auto published = [](std::int64_t span_ns) {
    return judged({kAlive, {"ANE0", "mJ", 0, 400, 1000, 1000 + span_ns}});
  };
  CHECK(published(kSecond).energy_j.at("ANE") == doctest::Approx(0.4));
  CHECK(published(1'100'000'000).energy_j.contains("ANE"));
  CHECK(published(900'000'000).energy_j.contains("ANE"));
  for (const std::int64_t span_ns : {1'100'000'001LL, 899'999'999LL, 2'130'000'000LL, 0LL, -5LL}) {
    CAPTURE(span_ns);
    CHECK_FALSE(published(span_ns).energy_j.contains("ANE"));
  }
  CHECK(says(published(2'130'000'000), "covers 2.130 s, but the window is 1.000 s"));
  CHECK(published(2'130'000'000).energy_j.contains("CPU"));  // its times are unknown
}

TEST_CASE("counters are compared by name and order, not by position") {
  const EnergySample begin{
      {"CPU Energy", "mJ", 10, 0}, {"ANE0", "mJ", 1, 0}, {"ANE0", "mJ", 50, 0}};
  const EnergySample end{{"ANE0", "mJ", 4, 0},
                         {"ANE0", "mJ", 55, 0},
                         {"CPU Energy", "mJ", 20, 0},
                         {"DRAM0", "mJ", 1, 0}};
  const EnergyVerdict verdict = judge_energy(begin, end, kSecond);
  CHECK(verdict.energy_j.at("ANE") == doctest::Approx(0.008));
  CHECK(verdict.energy_j.at("CPU") == doctest::Approx(0.01));
  CHECK(says(verdict, "DRAM is left out: DRAM0 appeared during the window"));
}

TEST_CASE("a CPU counter that appeared during the window is not frozen") {
  const EnergyVerdict verdict = judge_energy(
      {{"ANE0", "mJ", 1, 0}}, {{"ANE0", "mJ", 2, 0}, {"CPU Energy", "mJ", 9, 0}}, kSecond);
  CHECK(verdict.source == EnergySource::kOk);
  CHECK(verdict.energy_j.size() == 1);
  CHECK(says(verdict, "CPU is left out: CPU Energy appeared"));
}
