// How a compiled executable is saved, and what it says about its placement. Internal to objc/.
#pragma once

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <string>

#include "conv/conv.h"
#include "package/save.h"

namespace nnbt {

PackageSource package_source(MPSGraphExecutable* _Nonnull executable, const ConvSpec& spec);

// Loads a compiled executable from a saved package; nil if that fails.
MPSGraphExecutable* _Nullable load_package(const std::string& directory, const ConvSpec& spec,
                                           MPSGraphDevice* _Nonnull device,
                                           MPSGraphCompilationDescriptor* _Nonnull options);

}  // namespace nnbt
