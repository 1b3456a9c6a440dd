// Apple's private libraries by their paths are the doubles' shared libraries. The linker sends each
// dlopen of the product here (--wrap).
#include <dlfcn.h>

#include <string>
#include <string_view>

#include "fault.h"

extern "C" void* __real_dlopen(const char* path, int mode);

namespace {

struct Library {
  std::string_view path;
  const char* missing;  // the fault that takes it away
  const char* file;
};
constexpr Library kLibraries[] = {
    {"/usr/lib/libIOReport.dylib", "no_ioreport", "libdouble_ioreport.so"},
};

}  // namespace

extern "C" void* __wrap_dlopen(const char* path, int mode) {
  for (const auto& [known, missing, file] : kLibraries) {
    if (path == nullptr || known != path || doubles::fault(missing)) continue;
    // A library of that name without the functions.
    const char* chosen = doubles::fault("incomplete") ? "libdouble_empty.so" : file;
    return __real_dlopen((std::string(NNBT_DOUBLES_DIRECTORY "/") + chosen).c_str(), mode);
  }
  return __real_dlopen(path, mode);
}
