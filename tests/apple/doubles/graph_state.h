// What the doubles of MPSGraph know about a graph, as plain C++, and how they compute it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fault.h"

namespace doubles {

using Shape = std::vector<std::size_t>;
using Values = std::vector<float>;

enum class Op { kPlaceholder, kConstant, kConvolution, kCast, kQuantize, kDequantize };
enum class Type : std::uint32_t {
  kFloat32 = 0x10000020,
  kFloat16 = 0x10000010,
  kInt8 = 0x20000008,
  kInt32 = 0x20000020,
};

struct Convolution {
  bool same_padding;
  bool channels_last;
};

struct Node;
using NodeRef = std::shared_ptr<const Node>;
struct Node {
  Op op = Op::kPlaceholder;
  Type type = Type::kFloat32;
  Shape shape;
  Values values;  // of a constant
  std::vector<NodeRef> inputs;
  Convolution convolution{};
};

struct Graph {
  NodeRef input;
  NodeRef output;
};

std::size_t count(const Shape& shape);
std::size_t bytes_of(Type type);

// Converts between bytes in memory and real numbers: float16 rounds, integers round and saturate.
Values decode(const void* bytes, std::size_t count, Type type);
void encode(const Values& values, Type type, void* bytes);

// Size of the output of a convolution; throws std::invalid_argument if the operands do not match.
Shape convolved_shape(const Node& source, const Node& weights, const Convolution& convolution);

// The output for one input; the result of every operation is rounded to its type.
Values evaluate(const Graph& graph, const Values& input);

bool has_int8_convolution(const Graph& graph);

// Number of live objects of the doubles.
void count_object(long change);

}  // namespace doubles
