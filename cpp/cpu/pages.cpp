#include "cpu/pages.h"

#include <sys/mman.h>

#include <memory>
#include <string>

#include "base/unsupported.h"
#include "cpu/cpu.h"

namespace nnbt {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} * 1024 * 1024;

}  // namespace

Pages::Pages(std::size_t bytes) : mapped_bytes_(bytes + kHugePage) {
  mapping_ =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) {
    throw Unsupported("The system cannot allocate " + std::to_string(mapped_bytes_ / 1024 / 1024) +
                      " MiB of memory: use smaller arrays.");
  }
  data_ = mapping_;
  std::size_t space = mapped_bytes_;
  std::align(kHugePage, bytes, data_, space);
  advise_huge_pages(mapping_, mapped_bytes_);
}

Pages::~Pages() { munmap(mapping_, mapped_bytes_); }

std::int64_t Pages::huge_bytes() const { return huge_page_bytes(mapping_, mapped_bytes_); }

}  // namespace nnbt
