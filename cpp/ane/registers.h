// The Neural Engine's counter registers as data: their names in the framework, what each one
// probably counts in each known layout, the evidence, and what would disprove it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace nnbt::ane {

// Core-cycles summed over all cores: every derived number depends on this register.
inline constexpr std::size_t kNominalCycles = 10;
inline constexpr std::uint64_t kDmaLineBytes = 64;

// The framework returns 27 registers (216 bytes) or 29 (232 bytes); 24 of them have names.
inline constexpr std::size_t kMinRegisters = 24;
inline constexpr std::size_t kMaxRegisters = 64;

// Which registers count DMA traffic. Detected from the data, never from the name of a chip.
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
  std::string_view label;  // name in the framework, without the kANE_ prefix
  RegisterReading dma17;   // if the DMA registers are 17 and 18
  RegisterReading dma21;   // if they are 21 and 22
  std::string_view evidence;
  std::string_view falsifier;  // the observation that would disprove the reading
};

// Rows 0 to 28, in order.
std::span<const RegisterRow> register_table();

// The reading in a layout; for kUnknown, only if both layouts agree.
RegisterReading register_reading(const RegisterRow& row, Layout layout);

}  // namespace nnbt::ane
