// The part of Darwin's libproc and <sys/resource.h> that objc/macos reads; implemented by
// doubles/process.cpp.
#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define RUSAGE_INFO_V6 6
typedef void* rusage_info_t;
struct rusage_info_v6 {
  uint64_t ri_instructions;
  uint64_t ri_cycles;
};
int proc_pid_rusage(int pid, int flavor, rusage_info_t* buffer);
#ifdef __cplusplus
}
#endif
