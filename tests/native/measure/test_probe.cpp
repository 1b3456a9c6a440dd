#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fake_clock.h"
#include "measure/measure.h"
#include "measure/probe.h"

namespace {

using nnbt::Probe;
using nnbt::Reading;
using nnbt::testing::fake_clock;
using nnbt::testing::FakeStep;

// Records when it is called, in runs of the step.
class SpyProbe final : public Probe {
 public:
  SpyProbe(const FakeStep& step, std::vector<std::string>& log) : step_(step), log_(log) {}

  void begin() override { log_.push_back("begin " + std::to_string(step_.runs())); }

  void end(std::vector<Reading>& readings) override {
    log_.push_back("end " + std::to_string(step_.runs()));
    readings.push_back({"spied", "count", 1.0});
  }

 private:
  const FakeStep& step_;
  std::vector<std::string>& log_;
};

std::vector<Reading> watch(const std::unique_ptr<Probe>& probe, void (*work)()) {
  std::vector<Reading> readings;
  probe->begin();
  work();
  probe->end(readings);
  return readings;
}

double value_of(const std::vector<Reading>& readings, const std::string& name) {
  const auto found = std::ranges::find(readings, name, &Reading::name);
  REQUIRE(found != readings.end());
  return found->value;
}

}  // namespace

TEST_CASE("a probe's window contains the timed runs and no warm-up") {
  FakeStep step([](std::int64_t) { return 1000; });
  std::vector<std::string> log;
  std::vector<std::unique_ptr<Probe>> probes;
  probes.push_back(std::make_unique<SpyProbe>(step, log));
  probes.push_back(std::make_unique<SpyProbe>(step, log));
  const nnbt::Samples samples =
      nnbt::measure(step, {.warmup = 3, .runs = 4, .budget_s = 0}, probes, {}, fake_clock);
  CHECK(log == std::vector<std::string>{"begin 3", "begin 3", "end 7", "end 7"});
  CHECK(samples.readings.size() == 2);
}

TEST_CASE("the process probe counts the page faults of its window") {
  constexpr std::size_t kPages = 512;
  const std::vector<Reading> readings = watch(nnbt::probe_table().front().make(), [] {
    const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = kPages * page_bytes;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    volatile char* touched = static_cast<char*>(memory);
    for (std::size_t page = 0; page < kPages; ++page) touched[page * page_bytes] = 1;
    munmap(memory, bytes);
  });
  // Transparent huge pages may serve them all with one fault.
  CHECK(value_of(readings, "minor_faults") >= 1);
  CHECK(value_of(readings, "major_faults") >= 0);
}

TEST_CASE("the process probe has a unit for each reading") {
  const std::vector<Reading> readings = watch(nnbt::probe_table().front().make(), [] {});
  CHECK(readings.size() == 6);
  for (const Reading& reading : readings) {
    CHECK((reading.unit == "count" || reading.unit == "s"));
    CHECK(reading.value >= 0);
  }
}

TEST_CASE("the process probe is first in the table, and each row makes at most one probe") {
  const std::vector<nnbt::ProbeRow>& rows = nnbt::probe_table();
  REQUIRE_FALSE(rows.empty());
  CHECK(rows.front().name == "process");
  for (const nnbt::ProbeRow& row : rows) {
    CAPTURE(row.name);
    CHECK_FALSE(row.description.empty());
    if (const auto probe = row.make()) {
      for (const Reading& reading : watch(probe, [] {})) CHECK(reading.value >= 0);
    }
  }
}
