// An IOSurface of a given size in bytes, laid out as one row. Internal to objc/.
#pragma once

#import <Foundation/Foundation.h>
#import <IOSurface/IOSurfaceRef.h>

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace nnbt {

class Surface {
 public:
  Surface() = default;
  Surface(Surface&& other) noexcept
      : surface_(std::exchange(other.surface_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Surface& operator=(Surface&& other) noexcept {
    std::swap(surface_, other.surface_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Surface() {
    if (surface_ != nullptr) CFRelease(surface_);
  }

  // Zeroed; at least 16 KiB and whole pages, so that the allocator pads no rows. Throws
  // std::runtime_error if there is no memory.
  explicit Surface(std::size_t bytes);

  IOSurfaceRef _Nonnull get() const { return surface_; }

  // Calls `use` with the bytes while the surface is locked.
  void with_bytes(bool read_only, const std::function<void(std::span<std::byte>)>& use) const;

 private:
  IOSurfaceRef _Null_unspecified surface_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace nnbt
