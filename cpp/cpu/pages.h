// Memory directly from the system: untouched, so that the thread that first writes a page decides
// its NUMA node, and aligned for huge pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nnbt {

class Pages {
 public:
  // Throws Unsupported if the system has not enough memory.
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Aligned to 2 MiB.
  [[nodiscard]] void* data() const { return data_; }

  // Bytes in huge pages now: what was granted, not what was requested.
  [[nodiscard]] std::int64_t huge_bytes() const;

 private:
  void* mapping_;
  std::size_t mapped_bytes_;
  void* data_;
};

}  // namespace nnbt
