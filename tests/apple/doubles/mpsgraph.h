// Shared by the two files of MPSGraph doubles.
#pragma once

#import <Foundation/Foundation.h>
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include "graph_state.h"

namespace doubles {

struct ShapedType {
  Shape shape;
  Type type;
  bool operator==(const ShapedType&) const = default;
};
struct TensorData {
  id<MTLBuffer> buffer;
  ShapedType shaped;
};

// Raises NSInvalidArgumentException, as MPSGraph does for many mistakes.
void refuse(const char* what);

Shape shape_of(NSArray* sizes);
const NodeRef& node_of(MPSGraphTensor* tensor);

}  // namespace doubles
