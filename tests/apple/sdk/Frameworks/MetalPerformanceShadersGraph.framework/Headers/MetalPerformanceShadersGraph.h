// Declarations of the part of MPSGraph that objc/ uses; checked against the SDK's facts.
#ifndef NNBT_MPSGRAPH_H
#define NNBT_MPSGRAPH_H
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

NS_ASSUME_NONNULL_BEGIN

typedef NSArray<NSNumber*> MPSShape;
typedef NS_ENUM(uint64_t, MPSGraphOptimization) {
  MPSGraphOptimizationLevel0 = 0,
  MPSGraphOptimizationLevel1 = 1
};
typedef NS_ENUM(uint64_t, MPSGraphOptimizationProfile) {
  MPSGraphOptimizationProfilePerformance = 0,
  MPSGraphOptimizationProfilePowerEfficiency = 1
};
typedef NS_ENUM(NSUInteger, MPSGraphPaddingStyle) {
  MPSGraphPaddingStyleExplicit = 0,
  MPSGraphPaddingStyleTF_VALID = 1,
  MPSGraphPaddingStyleTF_SAME = 2
};
typedef NS_ENUM(NSUInteger, MPSGraphTensorNamedDataLayout) {
  MPSGraphTensorNamedDataLayoutNCHW = 0,
  MPSGraphTensorNamedDataLayoutNHWC = 1,
  MPSGraphTensorNamedDataLayoutOIHW = 2
};

// `sim` carries the state of the doubles on Linux; the macOS build never touches it.
#ifdef __APPLE__
@interface MPSGraphObject : NSObject
@end
#else
@interface MPSGraphObject : NSObject {
 @public
  void* sim;
}
@end
#endif

@class MPSGraphExecutable, MPSGraphOperation;

@interface MPSGraphTensor : MPSGraphObject <NSCopying>
@end
@interface MPSGraphType : MPSGraphObject <NSCopying>
@end
@interface MPSGraphShapedType : MPSGraphType
- (instancetype)initWithShape:(nullable MPSShape*)shape dataType:(MPSDataType)dataType;
@end
@interface MPSGraphDevice : MPSGraphObject
+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)metalDevice;
@end
@interface MPSGraphTensorData : MPSGraphObject
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer
                            shape:(MPSShape*)shape
                         dataType:(MPSDataType)dataType;
@end

@interface MPSGraphConvolution2DOpDescriptor : MPSGraphObject <NSCopying>
+ (nullable instancetype)descriptorWithStrideInX:(NSUInteger)strideInX
                                       strideInY:(NSUInteger)strideInY
                                 dilationRateInX:(NSUInteger)dilationRateInX
                                 dilationRateInY:(NSUInteger)dilationRateInY
                                          groups:(NSUInteger)groups
                                    paddingStyle:(MPSGraphPaddingStyle)paddingStyle
                                      dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout
                                   weightsLayout:(MPSGraphTensorNamedDataLayout)weightsLayout;
@end

typedef void (^MPSGraphExecutableCompletionHandler)(NSArray<MPSGraphTensorData*>* results,
                                                    NSError* _Nullable error);

@interface MPSGraphCompilationDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) MPSGraphOptimization optimizationLevel;
@property(readwrite, nonatomic) MPSGraphOptimizationProfile optimizationProfile;
@property(readwrite, nonatomic) BOOL waitForCompilationCompletion;
@end
@interface MPSGraphExecutableExecutionDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, atomic) BOOL waitUntilCompleted;
@property(readwrite, atomic) MPSGraphExecutableCompletionHandler completionHandler;
@end
@interface MPSGraphExecutableSerializationDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) BOOL append;
@end

@interface MPSGraphExecutable : MPSGraphObject
- (instancetype)initWithMPSGraphPackageAtURL:(NSURL*)mpsgraphPackageURL
                       compilationDescriptor:
                           (nullable MPSGraphCompilationDescriptor*)compilationDescriptor;
- (void)specializeWithDevice:(nullable MPSGraphDevice*)device
                  inputTypes:(NSArray<MPSGraphType*>*)inputTypes
       compilationDescriptor:(nullable MPSGraphCompilationDescriptor*)compilationDescriptor;
- (NSArray<MPSGraphTensorData*>*)
    runWithMTLCommandQueue:(id<MTLCommandQueue>)commandQueue
               inputsArray:(NSArray<MPSGraphTensorData*>*)inputsArray
              resultsArray:(nullable NSArray<MPSGraphTensorData*>*)resultsArray
       executionDescriptor:(nullable MPSGraphExecutableExecutionDescriptor*)executionDescriptor;
- (NSArray<MPSGraphTensorData*>*)
    runAsyncWithMTLCommandQueue:(id<MTLCommandQueue>)commandQueue
                    inputsArray:(NSArray<MPSGraphTensorData*>*)inputsArray
                   resultsArray:(nullable NSArray<MPSGraphTensorData*>*)resultsArray
            executionDescriptor:
                (nullable MPSGraphExecutableExecutionDescriptor*)executionDescriptor;
- (void)serializeToMPSGraphPackageAtURL:(NSURL*)url
                             descriptor:
                                 (nullable MPSGraphExecutableSerializationDescriptor*)descriptor;
@end

@interface MPSGraph : MPSGraphObject
+ (instancetype)new;
- (nullable MPSGraphExecutable*)
        compileWithDevice:(nullable MPSGraphDevice*)device
                    feeds:(NSDictionary<MPSGraphTensor*, MPSGraphShapedType*>*)feeds
            targetTensors:(NSArray<MPSGraphTensor*>*)targetTensors
         targetOperations:(nullable NSArray<MPSGraphOperation*>*)targetOperations
    compilationDescriptor:(nullable MPSGraphCompilationDescriptor*)compilationDescriptor;
@end
@interface MPSGraph (MPSGraphMemoryOps)
- (MPSGraphTensor*)placeholderWithShape:(nullable MPSShape*)shape
                               dataType:(MPSDataType)dataType
                                   name:(nullable NSString*)name;
- (MPSGraphTensor*)constantWithData:(NSData*)data
                              shape:(MPSShape*)shape
                           dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType;
@end
@interface MPSGraph (MPSGraphConvolutionOps)
- (MPSGraphTensor*)convolution2DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
                                            name:(nullable NSString*)name;
@end
@interface MPSGraph (MPSGraphTensorShapeOps)
- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor
                       toType:(MPSDataType)type
                         name:(nullable NSString*)name;
@end
@interface MPSGraph (MPSGraphQuantizationOps)
- (MPSGraphTensor*)quantizeTensor:(MPSGraphTensor*)tensor
                            scale:(double)scale
                        zeroPoint:(double)zeroPoint
                         dataType:(MPSDataType)dataType
                             name:(nullable NSString*)name;
- (MPSGraphTensor*)dequantizeTensor:(MPSGraphTensor*)tensor
                              scale:(double)scale
                          zeroPoint:(double)zeroPoint
                           dataType:(MPSDataType)dataType
                               name:(nullable NSString*)name;
- (MPSGraphTensor*)quantizeTensor:(MPSGraphTensor*)tensor
                      scaleTensor:(MPSGraphTensor*)scaleTensor
                  zeroPointTensor:(MPSGraphTensor*)zeroPointTensor
                         dataType:(MPSDataType)dataType
                             axis:(NSInteger)axis
                             name:(nullable NSString*)name;
- (MPSGraphTensor*)dequantizeTensor:(MPSGraphTensor*)tensor
                        scaleTensor:(MPSGraphTensor*)scaleTensor
                    zeroPointTensor:(MPSGraphTensor*)zeroPointTensor
                           dataType:(MPSDataType)dataType
                               axis:(NSInteger)axis
                               name:(nullable NSString*)name;
@end

NS_ASSUME_NONNULL_END
#endif
