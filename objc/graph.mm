#import "graph.h"

#include <vector>

#include "conv/data.h"
#import "support.h"

namespace nnbt {
namespace {

MPSShape* _Nonnull shape_of(std::initializer_list<std::int64_t> sizes) {
  NSMutableArray<NSNumber*>* shape = [NSMutableArray array];
  for (const std::int64_t size : sizes) [shape addObject:@(static_cast<long long>(size))];
  return shape;
}

// Builds one layer after another; they share the constants for weights and quantisation.
class ChainBuilder {
 public:
  explicit ChainBuilder(const ConvSpec& spec) : spec_(spec), graph_([MPSGraph new]) {
    const bool channels_first = spec.layout == ConvLayout::kNchw;
    convolution_ = [MPSGraphConvolution2DOpDescriptor
        descriptorWithStrideInX:1
                      strideInY:1
                dilationRateInX:1
                dilationRateInY:1
                         groups:1
                   paddingStyle:spec.padding == ConvPadding::kSame ? MPSGraphPaddingStyleTF_SAME
                                                                   : MPSGraphPaddingStyleTF_VALID
                     dataLayout:channels_first ? MPSGraphTensorNamedDataLayoutNCHW
                                               : MPSGraphTensorNamedDataLayoutNHWC
                  weightsLayout:MPSGraphTensorNamedDataLayoutOIHW];
    // Scale and zero point have the types of their tensors: the header requires it, and a stray
    // float32 constant keeps a graph off the ANE.
    if (spec.variant == ConvVariant::kQdq) {
      const double step = conv_scales(spec).activation;
      scale_ = [graph_ constantWithScalar:step dataType:MPSDataTypeFloat16];
      zero_ = [graph_ constantWithScalar:0 dataType:MPSDataTypeInt8];
    }
  }

  Chain build() {
    MPSGraphTensor* input = [graph_ placeholderWithShape:image_shape(spec_, 0)
                                                dataType:element_type(spec_)
                                                    name:@"input_0"];
    MPSGraphTensor* tensor = input;
    for (std::int64_t layer = 0; layer < spec_.layers; ++layer) {
      if (layer == 0 || !spec_.shared_weights) weights_ = weights(layer);
      tensor = add_layer(tensor);
    }
    return {graph_, input, tensor};
  }

 private:
  MPSGraphTensor* _Nonnull weights(std::int64_t layer) {
    const std::vector<std::byte> bytes = conv_weights(spec_, layer);
    const bool half = conv_weight_element_bytes(spec_.variant) == 2;
    return [graph_
        constantWithData:[NSData dataWithBytes:bytes.data() length:bytes.size()]
                   shape:shape_of({spec_.channels, spec_.channels, spec_.kernel, spec_.kernel})
                dataType:half ? MPSDataTypeFloat16 : MPSDataTypeInt8];
  }

  MPSGraphTensor* _Nonnull convolve(MPSGraphTensor* _Nonnull source,
                                    MPSGraphTensor* _Nonnull weights) {
    return [graph_ convolution2DWithSourceTensor:source
                                   weightsTensor:weights
                                      descriptor:convolution_
                                            name:nil];
  }

  MPSGraphTensor* _Nonnull dequantize(MPSGraphTensor* _Nonnull tensor, double step) {
    return [graph_ dequantizeTensor:tensor
                              scale:step
                          zeroPoint:0
                           dataType:MPSDataTypeFloat16
                               name:nil];
  }

  MPSGraphTensor* _Nonnull add_layer(MPSGraphTensor* _Nonnull input) {
    switch (spec_.variant) {
      case ConvVariant::kFp16:
        return convolve(input, weights_);
      case ConvVariant::kInt8: {
        MPSGraphTensor* wide = [graph_ castTensor:convolve(input, weights_)
                                           toType:MPSDataTypeFloat16
                                             name:@"dequant"];
        return [graph_ castTensor:wide toType:MPSDataTypeInt8 name:@"requant"];
      }
      case ConvVariant::kQdq: {
        MPSGraphTensor* real = [graph_ dequantizeTensor:input
                                            scaleTensor:scale_
                                        zeroPointTensor:zero_
                                               dataType:MPSDataTypeFloat16
                                                   axis:channel_axis()
                                                   name:nil];
        return [graph_ quantizeTensor:convolve(real, weights_)
                          scaleTensor:scale_
                      zeroPointTensor:zero_
                             dataType:MPSDataTypeInt8
                                 axis:channel_axis()
                                 name:nil];
      }
      case ConvVariant::kW8a8: {
        const ConvScales scales = conv_scales(spec_);
        MPSGraphTensor* real = dequantize(input, scales.activation);
        return [graph_ quantizeTensor:convolve(real, dequantize(weights_, scales.weight))
                                scale:scales.activation
                            zeroPoint:0
                             dataType:MPSDataTypeInt8
                                 name:nil];
      }
    }
  }

  NSInteger channel_axis() const { return spec_.layout == ConvLayout::kNchw ? 1 : 3; }

  const ConvSpec& spec_;
  MPSGraph* graph_;
  MPSGraphConvolution2DOpDescriptor* convolution_;
  MPSGraphTensor* weights_;
  MPSGraphTensor* scale_;
  MPSGraphTensor* zero_;
};

}  // namespace

Chain build_chain(const ConvSpec& spec) { return ChainBuilder(spec).build(); }

MPSShape* _Nonnull image_shape(const ConvSpec& spec, std::int64_t layers) {
  const std::int64_t size = conv_output_size(spec, layers);
  if (spec.layout == ConvLayout::kNhwc) return shape_of({spec.batch, size, size, spec.channels});
  return shape_of({spec.batch, spec.channels, size, size});
}

MPSDataType element_type(const ConvSpec& spec) {
  return conv_element_bytes(spec.variant) == 2 ? MPSDataTypeFloat16 : MPSDataTypeInt8;
}

}  // namespace nnbt
