#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "base/unsupported.h"
#include "cpu/stream.h"

using nnbt::StreamStep;

namespace {

// Every kernel on every instruction set of this machine, with both kinds of stores.
template <class Check>
void for_each_variant(const Check& check) {
  for (const nnbt::StreamSet& set : nnbt::stream_sets()) {
    if (!set.missing().empty()) continue;
    for (const nnbt::StreamKernel& kernel : nnbt::stream_kernels()) {
      for (const bool nontemporal : {false, true}) {
        if (nontemporal && kernel.writes == 0) continue;
        CAPTURE(set.isa);
        CAPTURE(kernel.name);
        CAPTURE(nontemporal);
        check(kernel.name, nnbt::StreamOptions{.nontemporal = nontemporal, .isa = set.isa});
      }
    }
  }
}

}  // namespace

TEST_CASE("byte counts of each convention") {
  struct Expected {
    std::string_view name;
    int counted, write_allocate, bcopy, operations;
  };
  const Expected expected[] = {{"read", 8, 8, 0, 1},   {"write", 8, 16, 0, 0},
                               {"copy", 16, 24, 8, 0}, {"scale", 16, 24, 0, 1},
                               {"add", 24, 32, 0, 1},  {"triad", 24, 32, 0, 2}};
  const auto kernels = nnbt::stream_kernels();
  REQUIRE(kernels.size() == std::size(expected));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    CAPTURE(kernels[i].name);
    CHECK(kernels[i].name == expected[i].name);
    CHECK(kernels[i].counted_bytes() == expected[i].counted);
    CHECK(kernels[i].write_allocate_bytes() == expected[i].write_allocate);
    CHECK(kernels[i].bcopy_bytes == expected[i].bcopy);
    CHECK(kernels[i].operations == expected[i].operations);
  }
}

TEST_CASE("every variant computes its formula, for whole blocks and partial ones") {
  for_each_variant([](std::string_view kernel, nnbt::StreamOptions options) {
    // 64 bytes per thread is the smallest array; 8 * 1039 doubles is not a multiple of any block.
    for (const std::int64_t lines : {2, 3, 64, 1039}) {
      options.array_bytes = 64 * lines;
      options.threads = 2;
      options.passes = 3;
      StreamStep step(kernel, options);
      step.run();
      step.run();
      const std::optional<std::string> fault = step.verify();
      CHECK_MESSAGE(!fault, fault.value_or(""));
    }
  });
}

TEST_CASE("a single wrong element is found anywhere") {
  for_each_variant([](std::string_view kernel, nnbt::StreamOptions options) {
    options.array_bytes = 64 * 200;
    options.threads = 2;
    options.passes = 1;
    StreamStep step(kernel, options);
    step.run();
    REQUIRE(!step.verify());
    const std::size_t last = step.destination().size() - 1;
    for (const std::size_t i : {std::size_t{0}, last / 2, last}) {
      const double right = step.destination()[i];
      step.destination()[i] += 1;
      const std::optional<std::string> fault = step.verify();
      REQUIRE(fault);
      CHECK(fault->find("element " + std::to_string(i) + " is wrong") != std::string::npos);
      step.destination()[i] = right;
    }
    CHECK(!step.verify());
  });
}

TEST_CASE("read: an element that changed during the runs changes the sum") {
  StreamStep step("read", {.array_bytes = 1 << 16, .threads = 2, .passes = 1});
  step.run();
  step.destination()[77] += 1;
  step.run();
  step.destination()[77] -= 1;
  const std::optional<std::string> fault = step.verify();
  REQUIRE(fault);
  CHECK(fault->find("some data was not read") != std::string::npos);
}

TEST_CASE("nothing verifies before the first run") {
  StreamStep step("copy", {.array_bytes = 1 << 16, .threads = 1});
  CHECK(step.verify().value_or("").find("Nothing has run") == 0);
}

TEST_CASE("work of one run") {
  const StreamStep triad("triad", {.array_bytes = 8000 * 8, .threads = 2, .passes = 5});
  CHECK(triad.array_bytes() == 8000 * 8);
  CHECK(triad.working_set_bytes() == 3 * 8000 * 8);
  CHECK(triad.work_bytes() == 24 * 8000 * 5);
  CHECK(triad.traffic_bytes() == 32 * 8000 * 5);
  CHECK(triad.work_ops() == 2 * 8000 * 5);
  const StreamStep around(
      "triad", {.array_bytes = 8000 * 8, .threads = 2, .nontemporal = true, .passes = 5});
  CHECK(around.traffic_bytes() == 24 * 8000 * 5);
}

TEST_CASE("array sizes are rounded down to 64 bytes, and passes are chosen by traffic") {
  const StreamStep step("copy", {.array_bytes = (1 << 20) + 63, .threads = 1});
  CHECK(step.array_bytes() == 1 << 20);
  CHECK(step.passes() == 128);  // 2 MiB counted per pass, 256 MiB wanted
  CHECK(StreamStep("read", {.array_bytes = 600 << 20, .threads = 1}).passes() == 1);
}

TEST_CASE("impossible requests are refused with an alternative") {
  using nnbt::Unsupported;
  const auto refusal = [](std::string_view kernel, const nnbt::StreamOptions& options) {
    try {
      const StreamStep step(kernel, options);
    } catch (const Unsupported& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("quadrad", {.array_bytes = 4096}).find("use one of read, write, copy") !=
        std::string::npos);
  CHECK(refusal("read", {.array_bytes = 4096, .nontemporal = true}).find("run it without") !=
        std::string::npos);
  CHECK(refusal("copy", {.array_bytes = 100, .threads = 2}).find("at least 128 bytes") !=
        std::string::npos);
  CHECK(refusal("copy", {.array_bytes = 4096, .isa = "VAX"}).find("There are no STREAM loops") ==
        0);
  CHECK(refusal("copy", {.array_bytes = std::int64_t{1} << 60}).find("smaller arrays") !=
        std::string::npos);
  CHECK_THROWS_AS(StreamStep("copy", {.array_bytes = -1}), std::invalid_argument);
  CHECK_THROWS_AS(StreamStep("copy", {.array_bytes = 4096, .passes = -1}), std::invalid_argument);
}
