// A persistent team of threads, each pinned to its own processor, for work that is timed: making
// or waking threads costs more than many a kernel runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace nnbt {

class Team {
 public:
  // 0 threads: one per processor that this process may use. Threads beyond those share processors.
  // `cpus`, if there are any, replace those processors, in this order; one that this process may
  // not use leaves its thread unpinned. Throws std::invalid_argument for a negative number; thread
  // creation errors propagate.
  explicit Team(int threads = 0, const std::vector<int>& cpus = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(threads_.size()); }

  // The processor of each thread, -1 where the system does not pin.
  [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }

  // Runs work(index) once on every thread, 0 <= index < size(), and blocks until all are done.
  // Rethrows the first exception once every thread has finished. Not reentrant.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int index, int cpu);
  void stop();

  // Raised by one for each piece of work; on their own cache lines, since all threads watch them.
  alignas(128) std::atomic<std::uint32_t> generation_{0};
  alignas(128) std::atomic<std::int32_t> busy_{0};
  alignas(128) const std::function<void(int)>* work_ = nullptr;
  bool stopping_ = false;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
};

}  // namespace nnbt
