#include "ane/registers.h"

#include <array>

namespace nnbt::ane {
namespace {

constexpr std::array kLayouts = {
    LayoutRow{Layout::kDmaAt17, "dma17", 17, 18, 19},  // M1 (h13g)
    LayoutRow{Layout::kDmaAt21, "dma21", 21, 22, 23},  // M4, M4 Pro (h16g)
};

constexpr RegisterReading kZero = {"reads zero", "unknown", Confidence::kNone};
constexpr RegisterReading kUnknown = {"unknown", "unknown", Confidence::kNone};
constexpr RegisterReading kUnnamed = {"unnamed, reads zero", "unknown", Confidence::kNone};

constexpr std::string_view kZeroEvidence =
    "No change over 20 inferences of ResNet-50 and MobileNetV2 on M1 and on M4.";
constexpr std::string_view kZeroFalsifier = "Any change while the Neural Engine works.";
constexpr std::string_view kUnnamedFalsifier =
    "Any change while the Neural Engine works, or a name from a newer framework.";

constexpr RegisterReading kInputStall = {"waiting for input", "core-cycles", Confidence::kMedium};
constexpr RegisterReading kOutputStall = {"waiting for output", "core-cycles", Confidence::kLow};
constexpr RegisterReading kKernelStall = {"work-proportional count, kernel wait or back-pressure",
                                          "counts", Confidence::kLow};
constexpr RegisterReading kComputeCycles = {"multiplier-busy cycles", "core-cycles",
                                            Confidence::kMedium};
constexpr RegisterReading kThrottleL2 = {"on-chip memory throttle", "cycles", Confidence::kLow};
constexpr RegisterReading kDmaTotal = {"memory traffic, reads and writes", "64-byte lines",
                                       Confidence::kHigh};
constexpr RegisterReading kDmaRead = {"memory reads", "64-byte lines", Confidence::kHigh};
constexpr RegisterReading kEnergy = {"energy accumulator", "unknown", Confidence::kMedium};

constexpr std::string_view kShiftEvidence =
    "12 to 16 look shifted by one: as busy cycles, 12 gives 189 and 186 multiplies per core-cycle "
    "for ResNet-50 on M1 and M4 (at most 256 are possible), while 13 gives 1.2 million in a "
    "published convolution run.";

constexpr std::array kRegisters = {
    RegisterRow{0, "AF_TO_L2_DATA", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{1, "AF_TO_KM_DATA", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{2, "L2_TO_AF_DATA", kUnknown, kUnknown,
                "Its raw value grows between runs; no change per inference has been published.",
                "A change that follows bytes or cycles of a known workload."},
    RegisterRow{3, "L2_TO_NE_DATA", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{4, "NE_TO_L2_DATA", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{5, "INT8_CYCLES", kZero, kZero,
                "Its raw value is constant (816 on M4), also in INT8 runs.", kZeroFalsifier},
    RegisterRow{6, "FP16_CYCLES", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{7, "L2_READ_STALL_CYCLES", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{8, "L2_WRITE_STALL_CYCLES", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{9, "KM_STALL_CYCLES", kZero, kZero, kZeroEvidence, kZeroFalsifier},
    RegisterRow{
        10,
        "NE_NOMINAL_CYCLES",
        {"cycles in which the engine runs, summed over cores", "core-cycles", Confidence::kHigh},
        {"cycles in which the engine runs, summed over cores", "core-cycles", Confidence::kHigh},
        "Divided by 16 cores and by the time of the run it gives 2.36 GHz in five M4 Pro "
        "workloads of different precision and length.",
        "A clock outside 0.3 to 4 GHz, or more multiplies per core-cycle than lanes."},
    RegisterRow{11,
                "NE_THROTTLE_CYCLES",
                {"throttled cycles", "core-cycles", Confidence::kLow},
                {"throttled cycles", "core-cycles", Confidence::kLow},
                "Below 1,000 per inference on M1 and M4; 250 million on newer phones.",
                "A low value during a run whose clock visibly drops."},
    RegisterRow{12, "L2_THROTTLE_CYCLES", kComputeCycles, kComputeCycles, kShiftEvidence,
                "For a saturated 3x3 convolution, a value that is not multiplies / 256 (FP16)."},
    RegisterRow{13, "NE_COMPUTE_CYCLES", kInputStall, kInputStall, kShiftEvidence,
                "A value that does not rise when the same work streams INT8 from memory."},
    RegisterRow{14, "NE_INPUT_STALL_CYCLES", kOutputStall, kOutputStall, kShiftEvidence,
                "A value that rises with the input feed rate alone."},
    RegisterRow{15, "NE_OUTPUT_STALL_CYCLES", kKernelStall, kKernelStall,
                "In published FP16 convolutions it is 60 counts per output element to within 951 "
                "in 503 million, and the same per multiply whether tensors fit on chip or not.",
                "A count per multiply that changes when tensors stop fitting on chip."},
    RegisterRow{16, "NE_KERNEL_STALL_CYCLES", kThrottleL2, kThrottleL2, kShiftEvidence,
                "A value that follows the amount of weights."},
    RegisterRow{17,
                "DMA_READWRITE_BYTES",
                kDmaTotal,
                {"cycles of a second clock", "cycles", Confidence::kHigh},
                "M1: 0.0196 and 0.0066 of register 10 for two networks, so it follows traffic. M4: "
                "0.0470 to 0.0473 of register 10 in seven runs of different traffic, so it "
                "follows time.",
                "On an h16 chip, a ratio to register 10 that changes with the bytes moved."},
    RegisterRow{18,
                "DMA_READ_BYTES",
                kDmaRead,
                {"planar engine, compute", "cycles", Confidence::kLow},
                "M1: times 64 bytes it is 56.6 MB for a network with 53.3 MB of weights.",
                "On an h13 chip, reads below the size of the weights."},
    RegisterRow{19,
                "DPE_ENERGY",
                kEnergy,
                {"planar engine, input wait", "cycles", Confidence::kLow},
                "M1: 812 and 944 per nominal core-cycle, far beyond any cycle count.",
                "No correlation with the energy that IOReport gives for long runs."},
    RegisterRow{20,
                "L2_NOMINAL_CYCLES",
                kZero,
                {"planar engine, output wait", "cycles", Confidence::kLow},
                "M4: 874 and 0 per inference of two networks.",
                "A value that follows the nominal cycles."},
    RegisterRow{21, "L2PE_COMPUTE_CYCLES", kZero, kDmaTotal,
                "M4: 963,072 and 139,568 where register 17 of an M1 has 928,512 and 140,016 for "
                "the same networks; times 64 bytes, three convolution variants give exactly their "
                "tensors and weights plus a round 256 or 128 KiB.",
                "Times 64 bytes, a value below the compulsory bytes or above every tensor moved "
                "once per layer, or one that differs between repeats of one program."},
    RegisterRow{22, "L2PE_INPUT_STALL_CYCLES", kZero, kDmaRead,
                "M4: times 64 bytes it is 60.0 and 8.2 MB for networks with 53.3 and 7.3 MB of "
                "weights.",
                "A value above register 21, or below the size of the weights."},
    RegisterRow{23, "L2PE_OUTPUT_STALL_CYCLES", kZero, kEnergy,
                "M4: 773 and 766 per nominal core-cycle, as register 19 of an M1.",
                "No correlation with the energy that IOReport gives for long runs."},
    RegisterRow{24, "UNKNOWN_24", kUnnamed, kUnnamed, kZeroEvidence, kUnnamedFalsifier},
    RegisterRow{25, "UNKNOWN_25", kUnnamed, kUnnamed, kZeroEvidence, kUnnamedFalsifier},
    RegisterRow{26, "UNKNOWN_26", kUnnamed, kUnnamed, kZeroEvidence, kUnnamedFalsifier},
    RegisterRow{27, "UNKNOWN_27", kUnnamed, kUnnamed, kZeroEvidence, kUnnamedFalsifier},
    RegisterRow{28, "UNKNOWN_28", kUnnamed, kUnnamed, kZeroEvidence, kUnnamedFalsifier},
};

}  // namespace

std::span<const LayoutRow> layout_table() { return kLayouts; }

std::string_view layout_name(Layout layout) {
  for (const LayoutRow& row : kLayouts) {
    if (row.layout == layout) return row.name;
  }
  return "unknown";
}

std::string_view confidence_name(Confidence confidence) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "low", "medium", "high"};
  return kNames.at(static_cast<std::size_t>(confidence));
}

std::span<const RegisterRow> register_table() { return kRegisters; }

RegisterReading register_reading(const RegisterRow& row, Layout layout) {
  if (layout == Layout::kDmaAt17) return row.dma17;
  if (layout == Layout::kDmaAt21) return row.dma21;
  return row.dma17.meaning == row.dma21.meaning ? row.dma17 : kUnknown;
}

}  // namespace nnbt::ane
