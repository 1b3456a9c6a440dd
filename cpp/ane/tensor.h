// A tensor as the Neural Engine's driver lays it out in a surface: rows padded to 64 bytes, so that
// a surface is dense only where a row's bytes are a multiple of 64. Portable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nnbt::ane {

inline constexpr std::int64_t kRowAlignment = 64;

// One entry of a loaded model's live lists, with its keys; 0: the key was missing. In memory the
// order is batch, depth, plane (channel), row.
struct Tensor {
  std::string type;  // "Float16", "Int8"
  std::int64_t batches = 0;
  std::int64_t channels = 0;
  std::int64_t depth = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t batch_stride = 0;
  std::int64_t depth_stride = 0;
  std::int64_t plane_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t interleave = 0;
};

// The tensor with every missing count 1 and every missing stride the least one that holds what is
// below it (rows on 64 bytes). Throws std::runtime_error with the reason for counts that aren't
// positive, strides that overlap, interleaved channels and unknown types.
Tensor complete(const Tensor& tensor);

// The rest takes completed tensors.
std::size_t element_bytes(const Tensor& tensor);
std::size_t dense_bytes(const Tensor& tensor);    // without padding
std::size_t surface_bytes(const Tensor& tensor);  // with it

// Copies between dense row-major values and a surface of at least surface_bytes; padding is left
// alone. Throws std::runtime_error where the sizes don't fit.
void copy_to_surface(const Tensor& tensor, std::span<const std::byte> dense,
                     std::span<std::byte> surface);
std::vector<std::byte> copy_from_surface(const Tensor& tensor, std::span<const std::byte> surface);

}  // namespace nnbt::ane
