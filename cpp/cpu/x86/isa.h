// Code for each x86 instruction set: one file each, compiled with the flags of that set.
#pragma once

#include "cpu/isa_code.h"

namespace nnbt::x86 {

extern const ChainCode kSse2Float32;
extern const ChainCode kSse2Float64;
extern const ChainCode kAvx2Float32;
extern const ChainCode kAvx2Float64;
extern const ChainCode kAvxVnniInt8;
extern const ChainCode kAvx512Float32;
extern const ChainCode kAvx512Float64;
extern const ChainCode kAvx512Float16;
extern const ChainCode kAvx512Bfloat16;
extern const ChainCode kAvx512VnniInt8;
extern const ChainCode kAmxBfloat16;
extern const ChainCode kAmxInt8;
extern const ChainCode kDependentAdd;

extern const StreamCode kStreamSse2;
extern const StreamCode kStreamAvx2;
extern const StreamCode kStreamAvx512;

}  // namespace nnbt::x86
