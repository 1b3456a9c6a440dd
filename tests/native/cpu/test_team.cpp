#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/unsupported.h"
#include "cpu/cpu.h"
#include "cpu/pages.h"
#include "cpu/team.h"

using nnbt::Team;

TEST_CASE("every thread runs each piece of work exactly once") {
  Team team(3);
  REQUIRE(team.size() == 3);
  std::vector<int> counts(3, 0);
  for (int piece = 1; piece <= 1000; ++piece) {
    team.run([&](int index) { ++counts[static_cast<std::size_t>(index)]; });
    REQUIRE(counts == std::vector<int>(3, piece));
  }
}

TEST_CASE("run returns only after the slowest thread is done") {
  Team team(2);
  std::atomic<bool> done = false;
  team.run([&](int index) {
    if (index == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
  CHECK(done);
}

TEST_CASE("threads persist between runs, and none is the caller's") {
  Team team(2);
  std::vector<std::thread::id> first(2);
  std::vector<std::thread::id> second(2);
  team.run([&](int i) { first[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  team.run([&](int i) { second[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  CHECK(first == second);
  CHECK(first[0] != first[1]);
  CHECK(std::ranges::find(first, std::this_thread::get_id()) == first.end());
}

TEST_CASE("an exception of one thread reaches the caller after the others have finished") {
  Team team(3);
  std::atomic<int> finished = 0;
  const auto work = [&](int index) {
    if (index == 1) throw nnbt::Unsupported("thread one can't");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++finished;
  };
  CHECK_THROWS_WITH_AS(team.run(work), "thread one can't", nnbt::Unsupported);
  CHECK(finished == 2);
  finished = 0;
  team.run([&](int /*index*/) { ++finished; });  // and the team continues
  CHECK(finished == 3);
}

TEST_CASE("threads are pinned to the allowed CPUs in turn") {
  const std::vector<int> allowed = nnbt::allowed_cpus();
  Team team;
  REQUIRE(team.size() == static_cast<int>(allowed.size()));
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const int cpu = team.cpus()[i];
    const bool as_allowed = cpu == allowed[i] || cpu == -1;
    CHECK(as_allowed);
  }
  Team more(static_cast<int>(allowed.size()) + 1);
  CHECK(more.cpus().back() == more.cpus().front());
}

TEST_CASE("pinning a thread restricts that thread only") {
  const std::vector<int> allowed = nnbt::allowed_cpus();
  const int last = *std::ranges::max_element(allowed);
  std::vector<int> seen;
  bool pinned = false;
  std::thread([&] {
    pinned = nnbt::pin_this_thread(last);
    seen = nnbt::allowed_cpus();
  }).join();
  if (pinned) CHECK(seen == std::vector<int>{last});
  CHECK(pinned == (Team(1).cpus().front() != -1));
  CHECK(nnbt::allowed_cpus() == allowed);
}

TEST_CASE("a negative number of threads is refused") {
  CHECK_THROWS_AS(Team(-1), std::invalid_argument);
}

TEST_CASE("cores and caches are plausible") {
  CHECK(nnbt::allowed_cores() >= 1);
  CHECK(nnbt::allowed_cores() <= static_cast<int>(nnbt::allowed_cpus().size()));
  int level = 0;
  for (const nnbt::CacheLevel& cache : nnbt::data_caches()) {
    CHECK(cache.level > level);  // nearest first, each level once
    CHECK(cache.bytes >= 1024);
    level = cache.level;
  }
}

TEST_CASE("pages are zeroed, aligned for huge pages, and of the requested size") {
  constexpr std::size_t kBytes = std::size_t{5} << 20;
  const nnbt::Pages pages(kBytes);
  CHECK(reinterpret_cast<std::uintptr_t>(pages.data()) % (std::size_t{2} << 20) == 0);
  auto* const bytes = static_cast<unsigned char*>(pages.data());
  CHECK(std::all_of(bytes, bytes + kBytes, [](unsigned char byte) { return byte == 0; }));
  bytes[kBytes - 1] = 1;
  CHECK(pages.huge_bytes() >= 0);
  CHECK(pages.huge_bytes() <= static_cast<std::int64_t>(kBytes + (std::size_t{2} << 20)));
}

TEST_CASE("more memory than any machine has is refused with a sentence") {
  CHECK_THROWS_AS(nnbt::Pages(std::size_t{1} << 60), nnbt::Unsupported);
}

TEST_CASE("given CPUs replace the allowed ones, in their order") {
  const std::vector<int> allowed = nnbt::allowed_cpus();
  const std::vector<int> named = {allowed.back(), allowed.front(), allowed.back()};
  const Team team(3, named);
  for (std::size_t i = 0; i < named.size(); ++i) {
    CAPTURE(i);
    CHECK((team.cpus()[i] == named[i] || team.cpus()[i] == -1));  // not every system can pin
  }
  const Team alone(1, {1'000'000});
  CHECK(alone.cpus() == std::vector<int>{-1});
}
