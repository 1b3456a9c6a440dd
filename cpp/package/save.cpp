#include "package/save.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/unsupported.h"

namespace nnbt {
namespace {

namespace fs = std::filesystem;

// Compiled regions, by OS release: ANECIR bitcode, LLIR bundles, machine code.
constexpr std::string_view kRegionSuffixes[] = {".bc.mlir", ".llir.bundle", ".hwx"};

// A path that no other thread or process of ours uses. Removed by the destructor.
class Scratch {
 public:
  explicit Scratch(const fs::path& beside) {
    static std::atomic<int> count{0};
    path_ = beside;
    path_ += ".partial-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// MPSGraph's serialiser reports nothing: a readable manifest with a model beside it is the only
// sign of success.
PackageManifest verified(const fs::path& package) {
  const fs::path manifest = package / "manifest.plist";
  std::error_code error;
  if (!fs::is_regular_file(manifest, error)) {
    throw std::runtime_error("there is no manifest.plist");
  }
  PackageManifest result;
  try {
    result = read_package_manifest(read_plist(manifest.string()));
  } catch (const std::exception& problem) {
    throw std::runtime_error(std::string("its manifest.plist is unusable (") + problem.what() +
                             ")");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(package, error)) {
    if (entry.path().extension() == ".mpsgraph" && entry.file_size(error) > 0) return result;
  }
  throw std::runtime_error("it contains no model");
}

std::string refusal(const std::string& directory, const std::string& why) {
  return "cannot save a package to " + directory + ": " + why;
}

// The disk may have filled up after the manifest was written, so every write is checked.
void add_description(const fs::path& package, const std::string& json) {
  std::ofstream file(package / "nnbt_conv.json", std::ios::binary);
  file << json << '\n';
  file.close();
  if (!file) throw std::runtime_error("nnbt_conv.json cannot be written");
}

std::string add_ane_bundle(const PackageSource& source, const fs::path& package) {
  if (!source.wants_ane) return {};
  const int regions = count_region_files(source.ane_directory);
  if (regions == 0) {
    return "the package has no ane_bundle: MPSGraph kept no compiled Neural Engine region";
  }
  fs::copy(source.ane_directory, package / "ane_bundle", fs::copy_options::recursive);
  if (regions > 1) {
    return "ane_bundle holds " + std::to_string(regions) +
           " regions: the graph was split, so replaying one region does not run the whole chain";
  }
  return {};
}

}  // namespace

int count_region_files(const std::string& directory) {
  int count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    for (const std::string_view suffix : kRegionSuffixes) count += name.ends_with(suffix) ? 1 : 0;
  }
  return count;
}

PackageManifest inspect_package(const PackageSource& source) {
  const Scratch scratch(fs::temp_directory_path() / "nnbt.mpsgraphpackage");
  source.serialise(scratch.path().string());
  return verified(scratch.path());
}

PlacementEvidence package_evidence(const PackageSource& source, bool fallback_disabled) {
  PlacementEvidence evidence;
  evidence.device = source.wants_ane ? ConvDevice::kAne : ConvDevice::kGpu;
  evidence.fallback_disabled = fallback_disabled;
  if (!source.ane_directory.empty()) {
    evidence.ane_region_files = count_region_files(source.ane_directory);
  }
  try {
    evidence.manifest = inspect_package(source);
  } catch (const std::exception& problem) {
    evidence.manifest_problem = problem.what();
  }
  return evidence;
}

void require_package(const std::string& directory) {
  try {
    verified(directory);
  } catch (const std::runtime_error& problem) {
    throw Unsupported(directory + " cannot be loaded as a package: " + problem.what());
  }
}

std::string save_package(const PackageSource& source, const std::string& directory) {
  fs::path target(directory);
  if (!target.has_filename()) target = target.parent_path();  // "a/b/" means "a/b"
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error))) {
    throw Unsupported(refusal(directory, "it already exists; choose another directory"));
  }
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  if (error || access(parent.c_str(), W_OK) != 0) {
    throw Unsupported(
        refusal(directory, parent.string() + " is not writable; choose another directory"));
  }
  try {
    const Scratch scratch(target);
    source.serialise(scratch.path().string());
    verified(scratch.path());
    add_description(scratch.path(), source.description);
    std::string missing = add_ane_bundle(source, scratch.path());
    fs::rename(scratch.path(), target);
    return missing;
  } catch (const std::exception& problem) {
    throw Unsupported(refusal(directory, std::string(problem.what()) + "; is the disk full?"));
  }
}

}  // namespace nnbt
