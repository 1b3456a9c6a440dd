// Darwin's call, which glibc no longer has; doubles/sysctl.cpp answers it.
#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
int sysctlbyname(const char* name, void* value, size_t* size, void* new_value, size_t new_size);
#ifdef __cplusplus
}
#endif
