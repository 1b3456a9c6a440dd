#include "ane/tensor.h"

#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace nnbt::ane {
namespace {

// Far beyond the engine's memory; keeps products within 64 bits.
constexpr std::int64_t kMaxCount = 1 << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 36;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> kTypes = {
    {{"Float16", 2}, {"Int8", 1}, {"UInt8", 1}, {"Int16", 2}, {"UInt16", 2}, {"Float32", 4}}};

std::int64_t bytes_of_type(const std::string& type) {
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  throw std::runtime_error("the model has a tensor of unknown type '" + type + "'");
}

void complete_count(std::int64_t& count) {
  if (count == 0) count = 1;
  if (count < 0 || count > kMaxCount) {
    throw std::runtime_error("the model has a tensor dimension of " + std::to_string(count));
  }
}

// `stride` must be at least `least` bytes.
void complete_stride(std::int64_t& stride, std::int64_t least, const char* name) {
  if (stride == 0) stride = least;
  if (stride < least || stride > kMaxBytes) {
    throw std::runtime_error(std::string("the model has a ") + name + " of " +
                             std::to_string(stride) + " bytes, but needs at least " +
                             std::to_string(least));
  }
}

// Calls `row(dense offset, surface offset, bytes)` for every row, in dense order.
template <typename Row>
void for_each_row(const Tensor& t, const Row& row) {
  const std::size_t bytes = static_cast<std::size_t>(t.width) * element_bytes(t);
  std::size_t dense = 0;
  for (std::int64_t batch = 0; batch < t.batches; ++batch) {
    for (std::int64_t channel = 0; channel < t.channels; ++channel) {
      for (std::int64_t depth = 0; depth < t.depth; ++depth) {
        for (std::int64_t y = 0; y < t.height; ++y) {
          const std::int64_t offset = (batch * t.batch_stride) + (depth * t.depth_stride) +
                                      (channel * t.plane_stride) + (y * t.row_stride);
          row(dense, static_cast<std::size_t>(offset), bytes);
          dense += bytes;
        }
      }
    }
  }
}

}  // namespace

Tensor complete(const Tensor& tensor) {
  Tensor t = tensor;
  const std::int64_t element = bytes_of_type(t.type);
  for (std::int64_t* count :
       {&t.batches, &t.channels, &t.depth, &t.height, &t.width, &t.interleave}) {
    complete_count(*count);
  }
  if (t.interleave != 1) {
    throw std::runtime_error("the model has a tensor whose channels are interleaved by " +
                             std::to_string(t.interleave));
  }
  const std::int64_t row = t.width * element;
  if (t.row_stride == 0) t.row_stride = (row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  complete_stride(t.row_stride, row, "row stride");
  complete_stride(t.plane_stride, t.row_stride * t.height, "plane stride");
  complete_stride(t.depth_stride, t.plane_stride * t.channels, "depth stride");
  complete_stride(t.batch_stride, t.depth_stride * t.depth, "batch stride");
  if (t.batch_stride > kMaxBytes / t.batches) {
    throw std::runtime_error("the model has a tensor of more than 64 GiB");
  }
  return t;
}

std::size_t element_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(bytes_of_type(tensor.type));
}

std::size_t dense_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.batches * tensor.channels * tensor.depth * tensor.height *
                                  tensor.width) *
         element_bytes(tensor);
}

std::size_t surface_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.batch_stride * tensor.batches);
}

void copy_to_surface(const Tensor& tensor, std::span<const std::byte> dense,
                     std::span<std::byte> surface) {
  if (dense.size() != dense_bytes(tensor) || surface.size() < surface_bytes(tensor)) {
    throw std::runtime_error("the model's input takes " + std::to_string(dense_bytes(tensor)) +
                             " bytes, but the convolution's has " + std::to_string(dense.size()));
  }
  for_each_row(tensor, [&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::memcpy(surface.data() + to, dense.data() + from, bytes);
  });
}

std::vector<std::byte> copy_from_surface(const Tensor& tensor, std::span<const std::byte> surface) {
  if (surface.size() < surface_bytes(tensor)) {
    throw std::runtime_error("the output's surface is smaller than its tensor");
  }
  std::vector<std::byte> dense(dense_bytes(tensor));
  for_each_row(tensor, [&](std::size_t to, std::size_t from, std::size_t bytes) {
    std::memcpy(dense.data() + to, surface.data() + from, bytes);
  });
  return dense;
}

}  // namespace nnbt::ane
