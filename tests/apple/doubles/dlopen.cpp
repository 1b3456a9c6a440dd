// Maps the paths of Apple's private libraries to the libraries of the doubles. The linker redirects
// each dlopen of the product here (--wrap).
#include <dlfcn.h>

#include <string>
#include <string_view>

#include "fault.h"

extern "C" void* __real_dlopen(const char* path, int mode);

namespace {

struct Library {
  std::string_view path;
  const char* missing;  // the fault that removes it
  const char* file;
};
constexpr Library kLibraries[] = {
    {"/usr/lib/libIOReport.dylib", "no_ioreport", "libdouble_ioreport.so"},
};

}  // namespace

extern "C" void* __wrap_dlopen(const char* path, int mode) {
  for (const auto& [known, missing, file] : kLibraries) {
    if (path == nullptr || known != path || doubles::fault(missing)) continue;
    // A library with that name, but without the functions.
    const char* chosen = doubles::fault("incomplete") ? "libdouble_empty.so" : file;
    return __real_dlopen((std::string(NNBT_DOUBLES_DIRECTORY "/") + chosen).c_str(), mode);
  }
  return __real_dlopen(path, mode);
}
