// A tensor in the Neural Engine's memory layout: rows are padded to 64 bytes, so a surface is dense
// only if the bytes of a row are a multiple of 64. Portable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nnbt::ane {

inline constexpr std::int64_t kRowAlignment = 64;

// One entry of a loaded model's live lists, with its keys; 0 if the key was missing. Memory order:
// batch, depth, plane (channel), row.
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

// The tensor with missing counts set to 1, and missing strides to the smallest that fits (rows:
// multiples of 64 bytes). Throws std::runtime_error for counts that are not positive, overlapping
// strides, interleaved channels and unknown types.
Tensor complete(const Tensor& tensor);

// These functions take completed tensors.
std::size_t element_bytes(const Tensor& tensor);
std::size_t dense_bytes(const Tensor& tensor);    // without padding
std::size_t surface_bytes(const Tensor& tensor);  // with padding

// Copy between dense row-major values and a surface of at least surface_bytes; padding is not
// written. Throw std::runtime_error if the sizes do not match.
void copy_to_surface(const Tensor& tensor, std::span<const std::byte> dense,
                     std::span<std::byte> surface);
std::vector<std::byte> copy_from_surface(const Tensor& tensor, std::span<const std::byte> surface);

}  // namespace nnbt::ane
