// The runner for C and Swift (module.modulemap makes it `import NNBTConv`).
#ifndef NNBT_CONV_H
#define NNBT_CONV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int64_t batch, size, channels, layers, kernel;
  int64_t runs;         // timed runs; 0: until the confidence interval is narrow
  const char* variant;  // "fp16", "int8", "qdq", "w8a8"
  const char* device;   // "gpu", "ane"
} nnbt_conv_request;

typedef struct {
  double median_ns;
  double tops;  // 1e12 operations per second, by the usual count
  int64_t compile_ns;
  int64_t runs;
  int right;           // 1: the result passed the check
  char placement[16];  // ANE only: "proven", "likely", "unproven", "not on ANE"
  char sentence[512];  // what the check found, or why there is no result
} nnbt_conv_result;

// The standard workload: B 1, C 128, H 256, K 3, L 20, fp16 on the GPU.
nnbt_conv_request nnbt_conv_standard(void);

// Measures one chain. Returns 1 with all fields of `result` set, or 0 with only `sentence`.
int nnbt_conv_measure(const nnbt_conv_request* request, nnbt_conv_result* result);

#ifdef __cplusplus
}
#endif

#endif
