// Binary property lists, version 00: "bplist00", objects, a table of their offsets, a 32-byte
// trailer. Layout as documented in Apple's open-source CFBinaryPList.c.
#include <bit>
#include <stdexcept>
#include <utility>

#include "package/plist_formats.h"

namespace nnbt {
namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kTrailerBytes = 32;

[[noreturn]] void fail(const char* what) {
  throw std::invalid_argument(std::string("binary property list: ") + what);
}

class BinaryReader {
 public:
  explicit BinaryReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    if (bytes.size() < kHeaderBytes + kTrailerBytes) fail("too short");
    const std::size_t trailer = bytes.size() - kTrailerBytes;
    offset_bytes_ = static_cast<std::size_t>(bytes[trailer + 6]);
    reference_bytes_ = static_cast<std::size_t>(bytes[trailer + 7]);
    count_ = number(trailer + 8, 8);
    top_ = number(trailer + 16, 8);
    table_ = number(trailer + 24, 8);
    if (offset_bytes_ < 1 || offset_bytes_ > 8 || reference_bytes_ < 1 || reference_bytes_ > 8) {
      fail("sizes in the trailer");
    }
    if (table_ < kHeaderBytes || table_ > trailer || count_ > (trailer - table_) / offset_bytes_ ||
        top_ >= count_) {
      fail("the trailer points outside of the file");
    }
  }

  Plist read() { return object(top_, 0); }

 private:
  std::uint64_t number(std::size_t at, std::size_t size) const {
    if (size > 8 || at > bytes_.size() || size > bytes_.size() - at) fail("truncated");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = (value << 8U) | static_cast<std::uint64_t>(bytes_[at + i]);
    }
    return value;
  }

  // Objects lie between the header and the offset table.
  void need(std::size_t at, std::uint64_t size) const {
    if (at > table_ || size > table_ - at) fail("an object is truncated");
  }

  // The count in the low half of the marker, or in the integer object that follows.
  std::uint64_t length(std::size_t& at, unsigned low) const {
    if (low != 0xF) return low;
    need(at, 1);
    const auto marker = static_cast<unsigned>(bytes_[at]);
    if ((marker >> 4U) != 1 || (marker & 0xFU) > 3) fail("a length isn't an integer");
    const std::size_t size = std::size_t{1} << (marker & 0xFU);
    need(at + 1, size);
    const std::uint64_t value = number(at + 1, size);
    at += 1 + size;
    return value;
  }

  Plist object(std::uint64_t index, std::size_t depth) {
    budget_.value(depth);
    if (index >= count_) fail("a reference to no object");
    std::size_t at = number(table_ + (index * offset_bytes_), offset_bytes_);
    if (at < kHeaderBytes) fail("an offset inside the header");
    need(at, 1);
    const auto marker = static_cast<unsigned>(bytes_[at++]);
    const unsigned low = marker & 0xFU;
    switch (marker >> 4U) {
      case 0x0:
        return simple(marker);
      case 0x1:
        return integer(at, low);
      case 0x2:
        return real(at, low);
      case 0x3:
        return real(at, 3);
      case 0x4:
      case 0x5:
        return ascii(at, low);
      case 0x6:
        return utf16(at, low);
      case 0x8:  // a keyed archiver's reference: 1 to 16 bytes
        need(at, low + 1);
        if (low > 7) fail("a reference id over 8 bytes");
        return {static_cast<std::int64_t>(number(at, low + 1))};
      case 0xA:
      case 0xC:
        return array(at, low, depth);
      case 0xD:
        return dict(at, low, depth);
      default:
        fail("an unknown kind of object");
    }
  }

  static Plist simple(unsigned marker) {
    if (marker == 0x00 || marker == 0x0F) return {};
    if (marker == 0x08 || marker == 0x09) return {marker == 0x09};
    fail("an unknown simple object");
  }

  Plist integer(std::size_t at, unsigned low) const {
    if (low > 4) fail("an integer over 16 bytes");
    const std::size_t size = std::size_t{1} << low;
    need(at, size);
    if (size == 16) at += 8;  // the upper half only extends the sign
    return {static_cast<std::int64_t>(number(at, size == 16 ? 8 : size))};
  }

  Plist real(std::size_t at, unsigned low) const {
    if (low != 2 && low != 3) fail("a real of odd size");
    need(at, std::size_t{1} << low);
    if (low == 3) return {std::bit_cast<double>(number(at, 8))};
    return {static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number(at, 4))))};
  }

  Plist ascii(std::size_t at, unsigned low) {
    const std::uint64_t size = length(at, low);
    need(at, size);
    budget_.text(size);
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(bytes_[at + i]);
    return {std::move(text)};
  }

  Plist utf16(std::size_t at, unsigned low) {
    const std::uint64_t units = length(at, low);
    if (units > bytes_.size()) fail("a string longer than the file");
    need(at, units * 2);
    budget_.text(units * 3);
    std::string text;
    for (std::uint64_t i = 0; i < units; ++i) {
      auto code = static_cast<std::uint32_t>(number(at + (2 * i), 2));
      if (code >= 0xD800 && code < 0xDC00 && i + 1 < units) {
        const auto second = static_cast<std::uint32_t>(number(at + (2 * i) + 2, 2));
        if (second >= 0xDC00 && second < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10U) + (second - 0xDC00);
          ++i;
        }
      }
      append_utf8(text, code);
    }
    return {std::move(text)};
  }

  std::uint64_t reference(std::size_t at, std::uint64_t i) const {
    return number(at + (i * reference_bytes_), reference_bytes_);
  }

  Plist array(std::size_t at, unsigned low, std::size_t depth) {
    const std::uint64_t size = length(at, low);
    if (size > bytes_.size()) fail("an array longer than the file");
    need(at, size * reference_bytes_);
    PlistArray items;
    for (std::uint64_t i = 0; i < size; ++i) items.push_back(object(reference(at, i), depth + 1));
    return {std::move(items)};
  }

  Plist dict(std::size_t at, unsigned low, std::size_t depth) {
    const std::uint64_t size = length(at, low);
    if (size > bytes_.size()) fail("a dictionary longer than the file");
    need(at, 2 * size * reference_bytes_);
    PlistDict entries;
    for (std::uint64_t i = 0; i < size; ++i) {
      const Plist key = object(reference(at, i), depth + 1);
      if (key.string() == nullptr) fail("a key that isn't a string");
      entries.insert_or_assign(*key.string(), object(reference(at, size + i), depth + 1));
    }
    return {std::move(entries)};
  }

  std::span<const std::byte> bytes_;
  std::size_t offset_bytes_ = 0;
  std::size_t reference_bytes_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t top_ = 0;
  std::size_t table_ = 0;
  PlistBudget budget_;
};

}  // namespace

Plist parse_binary_plist(std::span<const std::byte> bytes) { return BinaryReader(bytes).read(); }

}  // namespace nnbt
