#include "cpu/team.h"

#include <stdexcept>
#include <utility>

#include "cpu/cpu.h"

namespace nnbt {

Team::Team(int threads, const std::vector<int>& cpus) {
  if (threads < 0) throw std::invalid_argument("Team: the number of threads must not be negative");
  const std::vector<int> allowed = cpus.empty() ? allowed_cpus() : cpus;
  const auto count = threads > 0 ? static_cast<std::size_t>(threads) : allowed.size();
  cpus_.assign(count, -1);
  threads_.reserve(count);
  busy_ = static_cast<std::int32_t>(count);
  try {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back(&Team::serve, this, static_cast<int>(i), allowed[i % allowed.size()]);
    }
  } catch (...) {
    stop();
    throw;
  }
  while (const std::int32_t busy = busy_.load()) busy_.wait(busy);
}

Team::~Team() { stop(); }

void Team::stop() {
  stopping_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The caller sleeps immediately instead of spinning: with as many threads as CPUs it would take one
// away from a worker.
void Team::run(const std::function<void(int)>& work) {
  work_ = &work;
  busy_.store(static_cast<std::int32_t>(threads_.size()));
  generation_.fetch_add(1);
  generation_.notify_all();
  while (const std::int32_t busy = busy_.load()) busy_.wait(busy);
  work_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Team::serve(int index, int cpu) {
  if (pin_this_thread(cpu)) cpus_[static_cast<std::size_t>(index)] = cpu;
  for (std::uint32_t seen = 0;;) {
    if (busy_.fetch_sub(1) == 1) busy_.notify_all();
    generation_.wait(seen++);
    if (stopping_) return;
    try {
      (*work_)(index);
    } catch (...) {
      const std::scoped_lock lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

}  // namespace nnbt
