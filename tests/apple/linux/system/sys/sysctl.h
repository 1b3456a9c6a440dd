// Darwin's function, which glibc no longer has; implemented by doubles/sysctl.cpp.
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
int sysctlbyname(const char* name, void* value, size_t* size, void* new_value, size_t new_size);
#ifdef __cplusplus
}
#endif
