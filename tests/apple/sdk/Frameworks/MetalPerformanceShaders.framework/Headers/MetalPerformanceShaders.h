// Declarations of the part of MetalPerformanceShaders that objc/ uses; checked against the SDK's
// facts.
#ifndef NNBT_MPS_H
#define NNBT_MPS_H
#import <Metal/Metal.h>

typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeFloat32 = 0x10000020,
  MPSDataTypeFloat16 = 0x10000010,
  MPSDataTypeInt8 = 0x20000008,
  MPSDataTypeInt32 = 0x20000020
};
#endif
