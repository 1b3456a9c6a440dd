#import "package.h"

#include <stdexcept>

#import "graph.h"
#import "support.h"

namespace nnbt {
namespace {

// The executable's temporary directory, where the ANE's compiler stores its regions. Private,
// through key-value coding: an unknown key raises, and then there is no directory. Searching for
// directories instead might find one of another process.
std::string ane_directory(MPSGraphExecutable* _Nonnull executable) {
  std::string path;
  @autoreleasepool {
    @try {
      path = to_string([[executable valueForKey:@"modelFileArchivePath"] description]);
    } @catch (NSException*) {
      path.clear();
    }
  }
  constexpr const char* kFileScheme = "file://";
  if (path.starts_with(kFileScheme)) path.erase(0, std::char_traits<char>::length(kFileScheme));
  return path;
}

}  // namespace

PackageSource package_source(MPSGraphExecutable* _Nonnull executable, const ConvSpec& spec) {
  PackageSource source;
  source.serialise = [executable](const std::string& path) {
    guarded("serialising a package", [&] {
      MPSGraphExecutableSerializationDescriptor* options =
          [MPSGraphExecutableSerializationDescriptor new];
      options.append = NO;
      [executable serializeToMPSGraphPackageAtURL:[NSURL fileURLWithPath:to_ns(path)]
                                       descriptor:options];
      return Failure{};
    });
  };
  source.wants_ane = spec.device == ConvDevice::kAne;
  if (source.wants_ane) source.ane_directory = ane_directory(executable);
  source.description = to_json(spec);
  return source;
}

MPSGraphExecutable* _Nullable load_package(const std::string& directory, const ConvSpec& spec,
                                           MPSGraphDevice* _Nonnull device,
                                           MPSGraphCompilationDescriptor* _Nonnull options) {
  MPSGraphExecutable* executable = [[MPSGraphExecutable alloc]
      initWithMPSGraphPackageAtURL:[NSURL fileURLWithPath:to_ns(directory)]
             compilationDescriptor:options];
  MPSGraphShapedType* type = [[MPSGraphShapedType alloc] initWithShape:image_shape(spec, 0)
                                                              dataType:element_type(spec)];
  [executable specializeWithDevice:device inputTypes:@[ type ] compilationDescriptor:options];
  return executable;
}

}  // namespace nnbt
