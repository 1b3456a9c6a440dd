// Builds the chain of layers as an MPSGraph. Internal to objc/.
#pragma once

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include "conv/conv.h"

namespace nnbt {

struct Chain {
  MPSGraph* _Nonnull graph;
  MPSGraphTensor* _Nonnull input;
  MPSGraphTensor* _Nonnull output;
};

Chain build_chain(const ConvSpec& spec);

// Shape of the images after `layers` layers; 0: of the input.
MPSShape* _Nonnull image_shape(const ConvSpec& spec, std::int64_t layers);

MPSDataType element_type(const ConvSpec& spec);  // of input and output

}  // namespace nnbt
