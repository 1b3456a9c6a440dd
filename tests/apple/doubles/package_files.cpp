#include "package_files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace doubles {
namespace {

namespace fs = std::filesystem;

// Packages refer to graphs by their index here, so only the process that wrote them can read them.
std::vector<Graph>& saved_graphs() {
  static std::vector<Graph> graphs;
  return graphs;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string attributes(bool on_ane) {
  if (fault("no_flags")) return "";
  std::string list;
  if (on_ane) {
    list =
        "<string>mps.fullyPlacedOnANE</string><string>mps.noGPUActivity</string><dict>"
        "<key>mps.ane.calleeName</key><string>main_ANE_region_0_0</string></dict>";
  }
  return "<key>Entry Function Attributes</key><dict><key>main</key><array>" + list +
         "</array></dict>";
}

std::string plist(const std::string& value) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">" + value +
         "</plist>\n";
}

std::string manifest(bool on_ane) {
  return plist(
      "<dict><key>Package Version</key><dict><key>7.0.63</key><dict><key>GPU adapter present</key>"
      "<string>" +
      std::string(on_ane ? "NO" : "YES") + "</string><key>Optimized Modules</key><array><dict>" +
      attributes(on_ane) + "</dict></array></dict></dict></dict>");
}

}  // namespace

std::string make_archive(const Compiled& compiled) {
  static int number = 0;
  const fs::path directory =
      fs::temp_directory_path() / "com.apple.MetalPerformanceShadersGraph" /
      ("mpsgraph-" + std::to_string(getpid()) + "-" + std::to_string(number++));
  fs::create_directories(directory);
  const int regions = !compiled.on_ane || fault("no_region") ? 0 : fault("two_regions") ? 2 : 1;
  if (regions > 0) saved_graphs().push_back(compiled.graph);
  const std::string index = std::to_string(saved_graphs().size() - 1);
  for (int region = 0; region < regions; ++region) {
    const std::string key = "main_ANE_region_0_" + std::to_string(region);
    write(directory / (key + ".bc.mlir"), index);
    write(directory / (key + ".bc.weights"), "weights");
    if (fault("no_options")) continue;
    write(directory / ("compiler_options_" + key + ".plist"),
          plist("<dict><key>h16c</key><dict/></dict>"));
  }
  return directory.string();
}

void remove_archive(const std::string& directory) {
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

void write_package(const Compiled& compiled, const std::string& directory) {
  if (fault("disk_full_silent")) return;
  fs::create_directories(directory);
  const std::string text = manifest(compiled.on_ane);
  if (fault("disk_full")) {
    write(fs::path(directory) / "manifest.plist", text.substr(0, text.size() / 2));
    return;
  }
  write(fs::path(directory) / "manifest.plist", text);
  if (fault("disk_full_later")) {
    write(fs::path(directory) / "original_model_0.mpsgraph", "");
    return;
  }
  saved_graphs().push_back(compiled.graph);
  write(fs::path(directory) / "original_model_0.mpsgraph",
        std::to_string(saved_graphs().size() - 1));
  write(fs::path(directory) / "resources.bin", "constants");
}

Graph read_package(const std::string& directory) {
  return read_region((fs::path(directory) / "original_model_0.mpsgraph").string());
}

long count_executables(long change) {
  static long alive = 0;
  return alive += change;
}

Graph read_region(const std::string& path) {
  std::ifstream file(path);
  std::size_t index = 0;
  if (!(file >> index) || index >= saved_graphs().size()) return {};
  return saved_graphs()[index];
}

}  // namespace doubles
