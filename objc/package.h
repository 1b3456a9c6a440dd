// What a compiled executable can say about its placement, and how it's saved. Internal to objc/.
#pragma once

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <string>

#include "conv/conv.h"
#include "package/save.h"

namespace nnbt {

PackageSource package_source(MPSGraphExecutable* _Nonnull executable, const ConvSpec& spec);

// A compiled executable out of a saved package; nil and a failure where that is impossible.
MPSGraphExecutable* _Nullable load_package(const std::string& directory, const ConvSpec& spec,
                                           MPSGraphDevice* _Nonnull device,
                                           MPSGraphCompilationDescriptor* _Nonnull options);

}  // namespace nnbt
