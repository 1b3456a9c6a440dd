// How the engine lays out a tensor in a surface: rows padded to 64 bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "graph_state.h"

namespace doubles {

struct Layout {
  explicit Layout(const Node& node);
  std::size_t plane_stride() const { return row_stride * shape.at(2); }
  std::size_t batch_stride() const { return plane_stride() * shape.at(1); }
  std::size_t bytes() const { return batch_stride() * shape.at(0); }
  std::size_t rows() const { return shape.at(0) * shape.at(1) * shape.at(2); }

  Shape shape;
  Type type;
  std::size_t row_bytes;
  std::size_t row_stride;
};

std::vector<unsigned char> gather(const Layout& layout, const std::vector<unsigned char>& memory);

// Fills the padding with 0xFF: code that assumes a dense output reads NaN or -1.
void scatter(const Layout& layout, const std::vector<unsigned char>& dense,
             std::vector<unsigned char>& memory);

}  // namespace doubles
