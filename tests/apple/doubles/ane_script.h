// What the double of the Neural Engine reports and counts, from the environment variable
// NNBT_DOUBLE_ANE: words like "registers=27 hw_ns=20610000 cores=16 10=778700758", where a number
// before the sign is a register, followed by its change per evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace doubles {

struct AneScript {
  std::size_t registers = 29;
  std::uint64_t hw_ns = 50'000;
  unsigned cores = 16;
  unsigned engines = 1;
  std::string architecture = "h16g";
  std::map<std::size_t, std::uint64_t> changes = {{10, 1'000'000}};
};

// Read each time.
AneScript ane_script();

// The registers after one more evaluation. Faults: zero_counters, frozen, reset (backwards at each
// evaluation), reset_once and second_client (in the second window).
std::vector<std::uint64_t> count_evaluation();

// Called when the counters are read, which separates the windows.
void count_snapshot();

}  // namespace doubles
