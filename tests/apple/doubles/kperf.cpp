// Double of kperf: as for a user without root, unless a fault says otherwise.
#include <cerrno>

#include "fault.h"

extern "C" __attribute__((visibility("default"))) int kpc_force_all_ctrs_get(int* value) {
  *value = 0;
  if (doubles::fault("root")) return 0;
  errno = doubles::fault("kpc_unsupported") ? ENOTSUP : doubles::fault("kpc_busy") ? EBUSY : EPERM;
  return -1;
}
