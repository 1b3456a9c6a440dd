#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "package/manifest.h"
#include "package/plist.h"

namespace {

using namespace nnbt;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Plist parse(std::string_view text) { return parse_plist(bytes_of(text)); }

std::string manifest_xml(std::string_view attributes) {
  std::string xml = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict><key>Package Version</key><dict><key>7.0.63</key><dict>
<key>GPU adapter present</key><string>NO</string>
<key>Original Modules</key><array><dict><key>Entry Function Attributes</key><dict><key>main</key>
<array/></dict></dict></array>
<key>Optimized No Device Modules</key><array><dict><key>Entry Function Attributes</key><dict>
<key>main</key><array/></dict></dict></array>
<key>Optimized Modules</key><array><dict><key>Entry Function Attributes</key><dict><key>main</key>
<array>)";
  xml += attributes;
  return xml + R"(</array></dict></dict></array></dict></dict></dict></plist>)";
}

constexpr std::string_view kPlaced =
    "<string>mps.fullyPlacedOnANE</string><string>mps.noGPUActivity</string>"
    "<dict><key>mps.ane.calleeName</key><string>main_ANE_region_0_0</string></dict>";

// Writes binary property lists; only what the tests need.
class BinaryWriter {
 public:
  std::size_t add(std::string object) {
    objects_.push_back(std::move(object));
    return objects_.size() - 1;
  }
  std::size_t text(std::string_view value) {
    if (value.size() < 15) return add(char(0x50 | int(value.size())) + std::string(value));
    return add(std::string("\x5F\x10") + char(value.size()) + std::string(value));
  }
  std::size_t array(const std::vector<std::size_t>& items) {
    std::string object(1, char(0xA0 | int(items.size())));
    for (const std::size_t item : items) object += char(item);
    return add(object);
  }
  std::size_t dict(const std::vector<std::pair<std::size_t, std::size_t>>& entries) {
    std::string object(1, char(0xD0 | int(entries.size())));
    for (const auto& entry : entries) object += char(entry.first);
    for (const auto& entry : entries) object += char(entry.second);
    return add(object);
  }
  std::string finish(std::size_t top) const {
    std::string out = "bplist00";
    std::string table;
    for (const std::string& object : objects_) {
      table += char(out.size() >> 8);
      table += char(out.size() & 0xFF);
      out += object;
    }
    const std::size_t at = out.size();
    out += table + std::string(6, '\0') + "\x02\x01";
    for (const std::size_t number : {objects_.size(), top, at}) {
      for (int shift = 56; shift >= 0; shift -= 8) out += char((number >> shift) & 0xFF);
    }
    return out;
  }

 private:
  std::vector<std::string> objects_;
};

std::string binary_manifest() {
  BinaryWriter w;
  const auto callee = w.dict({{w.text("mps.ane.calleeName"), w.text("main_ANE_region_0_0")}});
  const auto list = w.array({w.text("mps.fullyPlacedOnANE"), w.text("mps.noGPUActivity"), callee});
  const auto entry =
      w.dict({{w.text("Entry Function Attributes"), w.dict({{w.text("main"), list}})}});
  const auto module = w.dict({{w.text("Optimized Modules"), w.array({entry})},
                              {w.text("GPU adapter present"), w.add("\x08")}});
  const auto version = w.dict({{w.text("7.0.56"), module}});
  return w.finish(w.dict({{w.text("Package Version"), version}}));
}

}  // namespace

TEST_CASE("an XML manifest of a graph on the ANE") {
  const PackageManifest manifest = read_package_manifest(bytes_of(manifest_xml(kPlaced)));
  CHECK(manifest.versions == std::vector<std::string>{"7.0.63"});
  CHECK(manifest.entry_points == 1);  // original and no-device modules don't count
  CHECK(manifest.fully_placed_on_ane == true);
  CHECK(manifest.no_gpu_activity == true);
  CHECK(manifest.ane_regions == std::vector<std::string>{"main_ANE_region_0_0"});
  CHECK(manifest.gpu_adapter_present == false);
}

TEST_CASE("the same manifest as a binary property list") {
  const PackageManifest manifest = read_package_manifest(bytes_of(binary_manifest()));
  CHECK(manifest.versions == std::vector<std::string>{"7.0.56"});
  CHECK(manifest.fully_placed_on_ane == true);
  CHECK(manifest.no_gpu_activity == true);
  CHECK(manifest.ane_regions == std::vector<std::string>{"main_ANE_region_0_0"});
  CHECK(manifest.gpu_adapter_present == false);
}

TEST_CASE("a GPU plan has attributes without flags, an old release has none") {
  const PackageManifest gpu = read_package_manifest(bytes_of(manifest_xml("<string>x</string>")));
  CHECK(gpu.fully_placed_on_ane == false);
  CHECK(gpu.no_gpu_activity == false);
  CHECK(gpu.ane_regions.empty());
  const PackageManifest old = read_package_manifest(
      bytes_of("<plist><dict><key>Package Version</key><dict><key>1</key><dict><key>Original</key>"
               "<integer>0</integer></dict></dict></dict></plist>"));
  CHECK_FALSE(old.fully_placed_on_ane.has_value());
  CHECK_FALSE(old.no_gpu_activity.has_value());
  CHECK_FALSE(old.gpu_adapter_present.has_value());
}

TEST_CASE("a flag that one of two entry functions lacks doesn't count") {
  std::string xml = manifest_xml(kPlaced);
  const std::string other = "<key>other</key><array><string>mps.noGPUActivity</string></array>";
  const std::size_t at = xml.rfind("<key>main</key>");
  const PackageManifest manifest = read_package_manifest(bytes_of(xml.insert(at, other)));
  CHECK(manifest.entry_points == 2);
  CHECK(manifest.fully_placed_on_ane == false);
  CHECK(manifest.no_gpu_activity == true);
}

TEST_CASE("what isn't a manifest is refused with a reason") {
  CHECK_THROWS_WITH_AS(read_package_manifest(bytes_of("<plist><dict/></plist>")),
                       doctest::Contains("Package Version"), std::invalid_argument);
  CHECK_THROWS_AS(read_package_manifest(bytes_of("")), std::invalid_argument);
  CHECK_THROWS_AS(read_package_manifest(bytes_of("bplist00")), std::invalid_argument);
  CHECK_THROWS_AS(read_package_manifest_file("/nonexistent/manifest.plist"), std::runtime_error);
  CHECK_THROWS_AS(read_package_manifest_file("/"), std::runtime_error);
}

TEST_CASE("XML values, entities, comments and numbers") {
  const Plist root = parse(
      "\xEF\xBB\xBF<!-- c --><plist version='1.0'><dict><key>a&amp;b</key><string>&lt;&#65;&#x20AC;"
      "<![CDATA[<&>]]></string><key>i</key><integer> -42 </integer><key>r</key><real>2.5e3</real>"
      "<key>t</key><true/><key>e</key><array><false/><!-- x --><string/></array></dict></plist>");
  CHECK(*root.find("a&b")->string() == "<A\xE2\x82\xAC<&>");
  CHECK(std::get<std::int64_t>(root.find("i")->value) == -42);
  CHECK(std::get<double>(root.find("r")->value) == 2500);
  CHECK(std::get<bool>(root.find("t")->value));
  CHECK(root.find("e")->array()->size() == 2);
  CHECK(root.find("missing") == nullptr);
  for (const char* bad :
       {"<plist>", "<plist><dict><key>a</key></dict></plist>", "<integer>x</integer>",
        "<real></real>", "<string>&bogus;</string>", "<string>&#x110000;</string>",
        "<dict><string/></dict>", "<string>a<b></string>", "</dict>", "<date", "x",
        "<integer>99999999999999999999</integer>", "<what/>", "<!-- ", "<?xml "}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse(bad), std::invalid_argument);
  }
}

TEST_CASE("binary numbers and UTF-16 text") {
  BinaryWriter w;
  using namespace std::string_literals;
  const auto top = w.array({w.add("\x10\xFF"s), w.add("\x13\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE"s),
                            w.add("\x23\x40\x04\0\0\0\0\0\0"s), w.add("\x22\x3F\x80\0\0"s),
                            w.add("\x63\x20\xAC\xD8\x3D\xDE\x00"s), w.add("\x09"s)});
  const Plist root = parse(w.finish(top));
  const PlistArray& items = *root.array();
  CHECK(std::get<std::int64_t>(items[0].value) == 255);
  CHECK(std::get<std::int64_t>(items[1].value) == -2);
  CHECK(std::get<double>(items[2].value) == 2.5);
  CHECK(std::get<double>(items[3].value) == 1.0);
  CHECK(*items[4].string() == "\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(std::get<bool>(items[5].value));
}

TEST_CASE("cycles, explosions and depth end in an exception") {
  BinaryWriter cycle;
  const std::string itself = cycle.finish(cycle.array({0}));
  CHECK_THROWS_WITH_AS(parse(itself), doctest::Contains("deeply"), std::invalid_argument);

  BinaryWriter bomb;  // 14^20 values from 21 objects
  std::size_t inner = bomb.add("\x08");
  for (int level = 0; level < 20; ++level) inner = bomb.array(std::vector<std::size_t>(14, inner));
  CHECK_THROWS_WITH_AS(parse(bomb.finish(inner)), doctest::Contains("too many"),
                       std::invalid_argument);

  std::string deep;
  for (int level = 0; level < 1'000'000; ++level) deep += "<array>";
  CHECK_THROWS_WITH_AS(parse(deep), doctest::Contains("deeply"), std::invalid_argument);
}

TEST_CASE("truncated, changed and random bytes never do worse than throw") {
  std::mt19937 random(1);
  int parsed = 0;
  int refused = 0;
  const auto attempt = [&](const std::string& text) {
    try {
      read_package_manifest(bytes_of(text));
      ++parsed;
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  };
  for (const std::string& good : {manifest_xml(kPlaced), binary_manifest()}) {
    for (std::size_t length = 0; length <= good.size(); ++length) attempt(good.substr(0, length));
    for (int round = 0; round < 20'000; ++round) {
      std::string changed = good;
      for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      attempt(changed);
    }
  }
  for (int round = 0; round < 5'000; ++round) {
    std::string noise = round % 2 == 0 ? "bplist00" : "<plist>";
    for (auto length = random() % 200; length > 0; --length) noise += static_cast<char>(random());
    attempt(noise);
  }
  CHECK(parsed > 1000);  // many single changes hit text only
  CHECK(refused > 5000);
}
