// The two readers behind parse_plist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "package/plist.h"

namespace nnbt {

// What one list may still cost; throws std::invalid_argument when it's spent.
class PlistBudget {
 public:
  void value(std::size_t depth);
  void text(std::size_t bytes);

 private:
  std::size_t values_ = 0;
  std::size_t text_ = 0;
};

void append_utf8(std::string& out, std::uint32_t code_point);

Plist parse_binary_plist(std::span<const std::byte> bytes);
Plist parse_xml_plist(std::string_view text);

}  // namespace nnbt
