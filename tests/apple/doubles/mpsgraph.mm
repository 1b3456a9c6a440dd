// Doubles of the MPSGraph classes that build a graph. Compiled without ARC for GCC's runtime, so
// their state is stored in `sim` of MPSGraphObject.
#import "mpsgraph.h"

#include <stdexcept>
#include <utility>

#pragma clang diagnostic ignored "-Wobjc-property-implementation"
#pragma clang diagnostic ignored "-Wincomplete-implementation"

using namespace doubles;

namespace doubles {

void refuse(const char* what) {
  [NSException raise:NSInvalidArgumentException format:@"MPSGraph double: %s", what];
}

Shape shape_of(NSArray* sizes) {
  Shape shape;
  for (NSUInteger i = 0; i < [sizes count]; i++) {
    shape.push_back([[sizes objectAtIndex:i] unsignedLongLongValue]);
  }
  return shape;
}

const NodeRef& node_of(MPSGraphTensor* tensor) { return *static_cast<NodeRef*>(tensor->sim); }

namespace {

MPSGraphTensor* tensor_of(Node node) {
  MPSGraphTensor* tensor = [[MPSGraphTensor new] autorelease];
  tensor->sim = new NodeRef(std::make_shared<const Node>(std::move(node)));
  return tensor;
}

MPSGraphTensor* constant(Values values, Shape shape, MPSDataType type) {
  Node node;
  node.op = Op::kConstant;
  node.type = static_cast<Type>(type);
  node.shape = std::move(shape);
  node.values = std::move(values);
  return tensor_of(std::move(node));
}

MPSGraphTensor* element_wise(Op op, MPSGraphTensor* tensor, MPSDataType type, NodeRef scale = {},
                             NodeRef zero = {}) {
  Node node;
  node.op = op;
  node.type = static_cast<Type>(type);
  node.shape = node_of(tensor)->shape;
  node.inputs = {node_of(tensor)};
  if (scale) node.inputs.insert(node.inputs.end(), {scale, zero});
  return tensor_of(std::move(node));
}

NodeRef scalar(double value) {
  return node_of(constant({static_cast<float>(value)}, {1}, MPSDataTypeFloat32));
}

// The rules of MPSGraphQuantizationOps.h: the scale has the type of the real tensor.
void require_scale_type(Type scale, Type real) {
  if (scale != real) refuse("the type of the scale is not that of the real tensor");
}

}  // namespace
}  // namespace doubles

@implementation MPSGraphObject
- (id)init {
  count_object(1);
  return [super init];
}
- (void)dealloc {
  count_object(-1);
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return [self retain];
}
@end

@implementation MPSGraphType
@end

@implementation MPSGraphTensor
- (void)dealloc {
  delete static_cast<NodeRef*>(sim);
  [super dealloc];
}
@end

@implementation MPSGraphShapedType
- (instancetype)initWithShape:(MPSShape*)shape dataType:(MPSDataType)type {
  if ((self = [super init])) sim = new ShapedType{shape_of(shape), static_cast<Type>(type)};
  return self;
}
- (void)dealloc {
  delete static_cast<ShapedType*>(sim);
  [super dealloc];
}
@end

@implementation MPSGraphDevice
+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)device {
  if (device == nil) refuse("a graph device needs a Metal device");
  return [[self new] autorelease];
}
+ (id)ANEDevice {
  return fault("no_ane") ? nil : [[self new] autorelease];
}
+ (BOOL)respondsToSelector:(SEL)selector {
  if (fault("no_private") && sel_isEqual(selector, @selector(ANEDevice))) return NO;
  return [super respondsToSelector:selector];
}
@end

@implementation MPSGraphTensorData
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer
                            shape:(MPSShape*)shape
                         dataType:(MPSDataType)type {
  if ((self = [super init])) {
    const Shape sizes = shape_of(shape);
    if (count(sizes) * bytes_of(static_cast<Type>(type)) > [buffer length]) {
      refuse("the buffer is smaller than its tensor");
    }
    sim = new TensorData{[(id)buffer retain], { sizes, static_cast<Type>(type) }};
  }
  return self;
}
- (void)dealloc {
  [(id) static_cast<TensorData*>(sim)->buffer release];
  delete static_cast<TensorData*>(sim);
  [super dealloc];
}
@end

@implementation MPSGraphConvolution2DOpDescriptor
+ (instancetype)descriptorWithStrideInX:(NSUInteger)strideInX
                              strideInY:(NSUInteger)strideInY
                        dilationRateInX:(NSUInteger)dilationRateInX
                        dilationRateInY:(NSUInteger)dilationRateInY
                                 groups:(NSUInteger)groups
                           paddingStyle:(MPSGraphPaddingStyle)paddingStyle
                             dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout
                          weightsLayout:(MPSGraphTensorNamedDataLayout)weightsLayout {
  if (strideInX != 1 || strideInY != 1 || dilationRateInX != 1 || dilationRateInY != 1 ||
      groups != 1 || weightsLayout != MPSGraphTensorNamedDataLayoutOIHW ||
      paddingStyle == MPSGraphPaddingStyleExplicit) {
    refuse("a convolution that the double can't compute");
  }
  MPSGraphConvolution2DOpDescriptor* descriptor = [[self new] autorelease];
  descriptor->sim = new Convolution{paddingStyle == MPSGraphPaddingStyleTF_SAME,
                                    dataLayout == MPSGraphTensorNamedDataLayoutNHWC};
  return descriptor;
}
- (void)dealloc {
  delete static_cast<Convolution*>(sim);
  [super dealloc];
}
@end

@implementation MPSGraph (MPSGraphMemoryOps)
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape
                               dataType:(MPSDataType)type
                                   name:(NSString*)name {
  (void)name;
  Node node;
  node.shape = shape_of(shape);
  node.type = static_cast<Type>(type);
  return tensor_of(std::move(node));
}
- (MPSGraphTensor*)constantWithData:(NSData*)data
                              shape:(MPSShape*)shape
                           dataType:(MPSDataType)type {
  const Shape sizes = shape_of(shape);
  if ([data length] != count(sizes) * bytes_of(static_cast<Type>(type))) {
    refuse("the constant's bytes don't fit its shape");
  }
  return constant(decode([data bytes], count(sizes), static_cast<Type>(type)), sizes, type);
}
- (MPSGraphTensor*)constantWithScalar:(double)value dataType:(MPSDataType)type {
  return constant({static_cast<float>(value)}, {1}, type);
}
@end

@implementation MPSGraph (MPSGraphConvolutionOps)
- (MPSGraphTensor*)convolution2DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
                                            name:(NSString*)name {
  (void)name;
  Node node;
  node.op = Op::kConvolution;
  node.type = node_of(source)->type;
  node.inputs = {node_of(source), node_of(weights)};
  node.convolution = *static_cast<Convolution*>(descriptor->sim);
  NSString* problem = nil;
  try {
    node.shape = convolved_shape(*node_of(source), *node_of(weights), node.convolution);
  } catch (const std::invalid_argument& error) {
    problem = [NSString stringWithUTF8String:error.what()];
  }
  if (problem != nil) refuse([problem UTF8String]);
  return tensor_of(std::move(node));
}
@end

@implementation MPSGraph (MPSGraphTensorShapeOps)
- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor
                       toType:(MPSDataType)type
                         name:(NSString*)name {
  (void)name;
  return element_wise(Op::kCast, tensor, type);
}
@end

@implementation MPSGraph (MPSGraphQuantizationOps)
- (MPSGraphTensor*)quantizeTensor:(MPSGraphTensor*)tensor
                            scale:(double)scale
                        zeroPoint:(double)zeroPoint
                         dataType:(MPSDataType)type
                             name:(NSString*)name {
  (void)name;
  return element_wise(Op::kQuantize, tensor, type, scalar(scale), scalar(zeroPoint));
}
- (MPSGraphTensor*)dequantizeTensor:(MPSGraphTensor*)tensor
                              scale:(double)scale
                          zeroPoint:(double)zeroPoint
                           dataType:(MPSDataType)type
                               name:(NSString*)name {
  (void)name;
  return element_wise(Op::kDequantize, tensor, type, scalar(scale), scalar(zeroPoint));
}
- (MPSGraphTensor*)quantizeTensor:(MPSGraphTensor*)tensor
                      scaleTensor:(MPSGraphTensor*)scale
                  zeroPointTensor:(MPSGraphTensor*)zero
                         dataType:(MPSDataType)type
                             axis:(NSInteger)axis
                             name:(NSString*)name {
  (void)axis, (void)name;
  require_scale_type(node_of(scale)->type, node_of(tensor)->type);
  return element_wise(Op::kQuantize, tensor, type, node_of(scale), node_of(zero));
}
- (MPSGraphTensor*)dequantizeTensor:(MPSGraphTensor*)tensor
                        scaleTensor:(MPSGraphTensor*)scale
                    zeroPointTensor:(MPSGraphTensor*)zero
                           dataType:(MPSDataType)type
                               axis:(NSInteger)axis
                               name:(NSString*)name {
  (void)axis, (void)name;
  require_scale_type(node_of(scale)->type, static_cast<Type>(type));
  return element_wise(Op::kDequantize, tensor, type, node_of(scale), node_of(zero));
}
@end
