// Code for each arm64 extension: one file each, compiled with the flags of that extension.
#pragma once

#include "cpu/isa_code.h"

namespace nnbt::arm64 {

extern const ChainCode kNeonFloat32;
extern const ChainCode kNeonFloat64;
extern const ChainCode kNeonFloat16;
extern const ChainCode kNeonInt8Dot;
extern const ChainCode kNeonInt8Matrix;
extern const ChainCode kNeonBfloat16Dot;
extern const ChainCode kNeonBfloat16Matrix;
extern const ChainCode kSveFloat32;
extern const ChainCode kSveFloat64;
extern const ChainCode kSveFloat16;
extern const ChainCode kSveInt8Dot;
extern const ChainCode kSveInt8Matrix;
extern const ChainCode kSveBfloat16Dot;
extern const ChainCode kSveBfloat16Matrix;
extern const ChainCode kSmeFloat32;
extern const ChainCode kSmeFloat64;
extern const ChainCode kSmeFloat16;
extern const ChainCode kSmeBfloat16;
extern const ChainCode kSmeInt8;
extern const ChainCode kDependentAdd;

extern const StreamCode kStreamNeon;

}  // namespace nnbt::arm64
