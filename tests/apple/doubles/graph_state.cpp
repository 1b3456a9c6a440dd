#include "graph_state.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string_view>

namespace doubles {
namespace {

std::atomic<long> live_objects{0};

float rounded(float value, Type type) {
  switch (type) {
    case Type::kFloat32:
      return value;
    case Type::kFloat16:
      return static_cast<float>(static_cast<_Float16>(value));
    case Type::kInt8:
      return std::clamp(std::nearbyint(value), -128.0F, 127.0F);
    case Type::kInt32:
      return std::nearbyint(value);
  }
  return value;
}

struct Axes {
  std::size_t channel, row, column;
};
Axes axes(bool channels_last) { return channels_last ? Axes{3, 1, 2} : Axes{1, 2, 3}; }

std::size_t offset(const Shape& shape, bool last, std::size_t image, std::size_t channel,
                   std::size_t row, std::size_t column) {
  const Axes at = axes(last);
  if (last) {
    return ((((image * shape[at.row]) + row) * shape[at.column]) + column) * shape[at.channel] +
           channel;
  }
  return ((((image * shape[at.channel]) + channel) * shape[at.row]) + row) * shape[at.column] +
         column;
}

struct Operands {
  const Node& node;
  const Values& source;
  const Values& weights;
};

float convolved(const Operands& operands, std::size_t image, std::size_t to, std::size_t row,
                std::size_t column) {
  const Node& node = operands.node;
  const Shape& from = node.inputs[0]->shape;
  const Shape& kernel = node.inputs[1]->shape;
  const bool last = node.convolution.channels_last;
  const Axes at = axes(last);
  const auto before = [&](std::size_t taps) {
    return node.convolution.same_padding ? (taps - 1) / 2 : 0;
  };
  float sum = 0;
  for (std::size_t tap = 0; tap < kernel[2] * kernel[3]; ++tap) {
    // Negative values wrap around and then exceed the size too.
    const std::size_t y = row + (tap / kernel[3]) - before(kernel[2]);
    const std::size_t x = column + (tap % kernel[3]) - before(kernel[3]);
    if (y >= from[at.row] || x >= from[at.column]) continue;
    for (std::size_t channel = 0; channel < kernel[1]; ++channel) {
      sum += operands.source[offset(from, last, image, channel, y, x)] *
             operands.weights[(((to * kernel[1]) + channel) * kernel[2] * kernel[3]) + tap];
    }
  }
  return sum;
}

Values convolve(const Operands& operands) {
  const Node& node = operands.node;
  const bool last = node.convolution.channels_last;
  const Axes at = axes(last);
  Values out(count(node.shape));
  for (std::size_t image = 0; image < node.shape[0]; ++image) {
    for (std::size_t to = 0; to < node.shape[at.channel]; ++to) {
      for (std::size_t row = 0; row < node.shape[at.row]; ++row) {
        for (std::size_t column = 0; column < node.shape[at.column]; ++column) {
          out[offset(node.shape, last, image, to, row, column)] =
              convolved(operands, image, to, row, column);
        }
      }
    }
  }
  return out;
}

using Memo = std::map<const Node*, Values>;

const Values& value_of(const Node& node, Memo& memo) {
  if (const auto found = memo.find(&node); found != memo.end()) return found->second;
  for (const NodeRef& input : node.inputs) value_of(*input, memo);
  const auto operand = [&](std::size_t i) -> const Values& {
    return memo.at(node.inputs[i].get());
  };
  Values out;
  switch (node.op) {
    case Op::kPlaceholder:
      throw std::invalid_argument("a placeholder was not fed");
    case Op::kConstant:
      out = node.values;
      break;
    case Op::kConvolution:
      out = convolve({node, operand(0), operand(1)});
      break;
    case Op::kCast:
      out = operand(0);
      break;
    case Op::kQuantize:
      out = operand(0);
      for (float& value : out) value = value / operand(1)[0] + operand(2)[0];
      break;
    case Op::kDequantize:
      out = operand(0);
      for (float& value : out) value = (value - operand(2)[0]) * operand(1)[0];
      break;
  }
  for (float& value : out) value = rounded(value, node.type);
  return memo.emplace(&node, std::move(out)).first->second;
}

bool any_int8_convolution(const Node& node, std::set<const Node*>& seen) {
  if (!seen.insert(&node).second) return false;
  if (node.op == Op::kConvolution && node.type == Type::kInt8) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const NodeRef& input) { return any_int8_convolution(*input, seen); });
}

}  // namespace

std::size_t count(const Shape& shape) {
  std::size_t product = 1;
  for (const std::size_t size : shape) product *= size;
  return product;
}

std::size_t bytes_of(Type type) { return (static_cast<std::uint32_t>(type) & 0xFFU) / 8; }

Values decode(const void* bytes, std::size_t count, Type type) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    switch (type) {
      case Type::kFloat32:
        values[i] = static_cast<const float*>(bytes)[i];
        break;
      case Type::kFloat16:
        values[i] = static_cast<float>(static_cast<const _Float16*>(bytes)[i]);
        break;
      case Type::kInt8:
        values[i] = static_cast<const std::int8_t*>(bytes)[i];
        break;
      case Type::kInt32:
        values[i] = static_cast<float>(static_cast<const std::int32_t*>(bytes)[i]);
        break;
    }
  }
  return values;
}

void encode(const Values& values, Type type, void* bytes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (type) {
      case Type::kFloat32:
        static_cast<float*>(bytes)[i] = values[i];
        break;
      case Type::kFloat16:
        static_cast<_Float16*>(bytes)[i] = static_cast<_Float16>(values[i]);
        break;
      case Type::kInt8:
        static_cast<std::int8_t*>(bytes)[i] = static_cast<std::int8_t>(values[i]);
        break;
      case Type::kInt32:
        static_cast<std::int32_t*>(bytes)[i] = static_cast<std::int32_t>(values[i]);
        break;
    }
  }
}

Shape convolved_shape(const Node& source, const Node& weights, const Convolution& convolution) {
  const Axes at = axes(convolution.channels_last);
  if (source.shape.size() != 4 || weights.shape.size() != 4 ||
      source.shape[at.channel] != weights.shape[1]) {
    throw std::invalid_argument("the convolution's channels don't fit");
  }
  if (source.type != weights.type) throw std::invalid_argument("the convolution's types differ");
  Shape shape = source.shape;
  shape[at.channel] = weights.shape[0];
  if (!convolution.same_padding) {
    if (shape[at.row] < weights.shape[2] || shape[at.column] < weights.shape[3]) {
      throw std::invalid_argument("the kernel is larger than the image");
    }
    shape[at.row] -= weights.shape[2] - 1;
    shape[at.column] -= weights.shape[3] - 1;
  }
  return shape;
}

Values evaluate(const Graph& graph, const Values& input) {
  Memo memo;
  memo[graph.input.get()] = input;
  return value_of(*graph.output, memo);
}

bool has_int8_convolution(const Graph& graph) {
  std::set<const Node*> seen;
  return any_int8_convolution(*graph.output, seen);
}

void count_object(long change) { live_objects += change; }

}  // namespace doubles

extern "C" __attribute__((visibility("default"))) long nnbt_doubles_live_objects() {
  return doubles::live_objects;
}
