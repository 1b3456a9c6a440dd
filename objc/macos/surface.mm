#import "surface.h"

#include <algorithm>
#include <cstring>

#import "support.h"

namespace nnbt {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLeastBytes = 16384;

class Lock {
 public:
  Lock(IOSurfaceRef _Nonnull surface, IOSurfaceLockOptions options)
      : surface_(surface), options_(options) {
    if (IOSurfaceLock(surface_, options_, nullptr) != 0) {
      throw std::runtime_error("the surface of a tensor cannot be locked");
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { IOSurfaceUnlock(surface_, options_, nullptr); }

 private:
  IOSurfaceRef _Nonnull surface_;
  IOSurfaceLockOptions options_;
};

}  // namespace

// Delegates, so that the destructor runs if the rest throws.
Surface::Surface(std::size_t bytes) : Surface() {
  bytes_ = (std::max(bytes, kLeastBytes) + kPageBytes - 1) / kPageBytes * kPageBytes;
  @autoreleasepool {
    NSNumber* size = @(static_cast<unsigned long>(bytes_));
    NSDictionary<NSString*, NSNumber*>* properties = @{
      (__bridge NSString*)kIOSurfaceWidth : size,
      (__bridge NSString*)kIOSurfaceHeight : @1,
      (__bridge NSString*)kIOSurfaceBytesPerElement : @1,
      (__bridge NSString*)kIOSurfaceBytesPerRow : size,
      (__bridge NSString*)kIOSurfaceAllocSize : size,
    };
    surface_ = IOSurfaceCreate((__bridge CFDictionaryRef)properties);
  }
  if (surface_ == nullptr || IOSurfaceGetAllocSize(surface_) < bytes_) {
    throw std::runtime_error("no surface of " + std::to_string(bytes_) +
                             " bytes can be allocated: use smaller --sizes or --batch");
  }
  with_bytes(false, [](std::span<std::byte> all) { std::memset(all.data(), 0, all.size()); });
}

void Surface::with_bytes(bool read_only,
                         const std::function<void(std::span<std::byte>)>& use) const {
  const IOSurfaceLockOptions options =
      read_only ? kIOSurfaceLockReadOnly : static_cast<IOSurfaceLockOptions>(0);
  const Lock lock(surface_, options);
  use({static_cast<std::byte*>(IOSurfaceGetBaseAddress(surface_)), bytes_});
}

}  // namespace nnbt
