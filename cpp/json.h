// The two pieces of JSON that need care, for documents written by hand.
#pragma once

#include <string>
#include <string_view>

namespace nnbt {

// A JSON string with its quotes. Bytes from 0x80 on pass unchanged: the text must be UTF-8.
std::string json_quoted(std::string_view text);

// The shortest number that reads back as the same double; null where JSON has no number for it.
std::string json_number(double value);

}  // namespace nnbt
