#include "ane_layout.h"

#include <cstring>

namespace doubles {
namespace {

constexpr std::size_t kRow = 64;
constexpr unsigned char kPoison = 0xFF;

}  // namespace

Layout::Layout(const Node& node)
    : shape(node.shape),
      type(node.type),
      row_bytes(shape.at(3) * bytes_of(type)),
      row_stride((row_bytes + kRow - 1) / kRow * kRow) {}

std::vector<unsigned char> gather(const Layout& layout, const std::vector<unsigned char>& memory) {
  std::vector<unsigned char> dense(layout.rows() * layout.row_bytes);
  for (std::size_t row = 0; row < layout.rows(); ++row) {
    std::memcpy(dense.data() + row * layout.row_bytes, memory.data() + row * layout.row_stride,
                layout.row_bytes);
  }
  return dense;
}

void scatter(const Layout& layout, const std::vector<unsigned char>& dense,
             std::vector<unsigned char>& memory) {
  std::memset(memory.data(), kPoison, layout.bytes());
  for (std::size_t row = 0; row < layout.rows(); ++row) {
    std::memcpy(memory.data() + row * layout.row_stride, dense.data() + row * layout.row_bytes,
                layout.row_bytes);
  }
}

}  // namespace doubles
