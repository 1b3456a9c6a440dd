#include "ane_script.h"

#include <cstdlib>
#include <sstream>

#include "graph_state.h"

namespace doubles {
namespace {

constexpr long kSecondWindow = 2;  // snapshots before it: after warming up and after the first

struct Engine {
  std::map<std::size_t, std::uint64_t> registers;
  long snapshots = 0;
  bool was_reset = false;
};

Engine& engine() {
  static Engine state;
  return state;
}

}  // namespace

AneScript ane_script() {
  AneScript script;
  const char* text = std::getenv("NNBT_DOUBLE_ANE");
  if (text == nullptr) return script;
  script.changes.clear();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t sign = word.find('=');
    const std::string key = word.substr(0, sign);
    const std::string value = word.substr(sign + 1);
    if (key == "architecture") {
      script.architecture = value;
    } else if (key == "registers") {
      script.registers = std::stoul(value);
    } else if (key == "hw_ns") {
      script.hw_ns = std::stoull(value);
    } else if (key == "cores") {
      script.cores = static_cast<unsigned>(std::stoul(value));
    } else if (key == "engines") {
      script.engines = static_cast<unsigned>(std::stoul(value));
    } else {
      script.changes[std::stoul(key)] = std::stoull(value);
    }
  }
  return script;
}

std::vector<std::uint64_t> count_evaluation() {
  constexpr std::uint64_t kSinceStart =
      5'000'000'000;  // counters have run since the driver started
  const AneScript script = ane_script();
  Engine& now = engine();
  if (fault("reset_once") && now.snapshots == kSecondWindow && !now.was_reset) {
    now.was_reset = true;
    for (auto& [index, value] : now.registers) value = 0;
  }
  std::vector<std::uint64_t> values(script.registers);
  if (fault("zero_counters")) return values;
  const bool shared = fault("second_client") && now.snapshots == kSecondWindow;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t& value = now.registers.try_emplace(i, kSinceStart + i).first->second;
    const auto change = script.changes.find(i);
    if (change != script.changes.end() && !fault("frozen")) {
      value = fault("reset") ? value - 1 : value + change->second * (shared ? 2 : 1);
    }
    values[i] = value;
  }
  return values;
}

void count_snapshot() { ++engine().snapshots; }

}  // namespace doubles
