#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"

namespace {

using namespace nnbt;

TEST_CASE("any bytes become valid text") {
  CHECK(json::text("a \"b\" \\ c\n\x01\x7F") == R"("a \"b\" \\ c\u000a\u0001\u007f")");
  CHECK(json::text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") ==
        "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  const std::string bad = "\xEF\xBF\xBD";
  for (const char* bytes : {"\xFF", "\xC3", "\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                            "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80"}) {
    const std::string_view raw = bytes;
    std::string expected = "\"";
    for (std::size_t i = 0; i < raw.size(); ++i) expected += bad;
    CHECK(json::text(raw) == expected + "\"");
  }
  CHECK(json::text("a\xC3(b") == "\"a" + bad + "(b\"");
}

TEST_CASE("numbers round trip, and non-finite ones are null") {
  CHECK(json::number(0.1) == "0.1");
  CHECK(json::number(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(json::number(-std::numeric_limits<double>::infinity()) == "null");
  CHECK(json::number(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(json::number(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(json::boolean(true) == "true");
}

TEST_CASE("lists, objects and absent values") {
  CHECK(json::texts(std::vector<std::string>{"a", "b"}) == R"(["a", "b"])");
  CHECK(json::numbers(std::vector<int>{}) == "[]");
  CHECK(json::maybe(std::optional<std::string>(), json::text) == "null");
  CHECK(json::maybe(std::optional<std::string>("x"), json::text) == "\"x\"");
  CHECK(json::Object().str() == "{}");
  CHECK(json::Object().add("a", json::number(1)).add("\"", json::Object().str()).str() ==
        R"({"a": 1, "\"": {}})");
}

}  // namespace
