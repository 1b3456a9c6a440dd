// The Neural Engine's counter registers as data: the framework's names, what each register is
// believed to count in each known layout, why, and what would prove that wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace nnbt::ane {

// Core-cycles summed over all cores: the one register every derived number rests on.
inline constexpr std::size_t kNominalCycles = 10;
inline constexpr std::uint64_t kDmaLineBytes = 64;

// The framework hands out 27 registers (216 bytes) or 29 (232 bytes); 24 of them have names.
inline constexpr std::size_t kMinRegisters = 24;
inline constexpr std::size_t kMaxRegisters = 64;

// Where the DMA registers sit. Detected from the data, never from a chip's name.
enum class Layout : std::uint8_t { kUnknown, kDmaAt17, kDmaAt21 };

struct LayoutRow {
  Layout layout;
  std::string_view name;
  std::size_t dma_total;  // reads and writes, in lines of 64 bytes
  std::size_t dma_read;
  std::size_t energy;  // accumulator of unknown unit, 766 to 944 per nominal core-cycle
};

std::span<const LayoutRow> layout_table();
std::string_view layout_name(Layout layout);

enum class Confidence : std::uint8_t { kNone, kLow, kMedium, kHigh };
std::string_view confidence_name(Confidence confidence);

struct RegisterReading {
  std::string_view meaning;
  std::string_view unit;
  Confidence confidence;
};

struct RegisterRow {
  std::size_t index;
  std::string_view label;  // the framework's own name, without its kANE_ prefix
  RegisterReading dma17;   // our reading where the DMA registers are 17 and 18
  RegisterReading dma21;   // our reading where they are 21 and 22
  std::string_view evidence;
  std::string_view falsifier;  // the observation that would prove our reading wrong
};

// Rows 0 to 28, in order.
std::span<const RegisterRow> register_table();

// Our reading under a layout; without a layout only readings that both layouts share.
RegisterReading register_reading(const RegisterRow& row, Layout layout);

}  // namespace nnbt::ane
