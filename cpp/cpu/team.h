// A persistent team of threads for timed work, each pinned to its own CPU: creating or waking
// threads takes longer than many kernels.
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
  // 0 threads: one per CPU that this process may use; more threads than CPUs share them. `cpus`
  // replaces those CPUs, in this order; a thread whose CPU this process may not use stays unpinned.
  // Throws std::invalid_argument for a negative number; errors of thread creation propagate.
  explicit Team(int threads = 0, const std::vector<int>& cpus = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(threads_.size()); }

  // The CPU of each thread; -1 if it is not pinned.
  [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }

  // Runs work(index) once on every thread, 0 <= index < size(), and blocks until all have finished.
  // Then rethrows the first exception. Not reentrant.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int index, int cpu);
  void stop();

  // Incremented for each piece of work. Every thread watches these, so each has its own cache line.
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
