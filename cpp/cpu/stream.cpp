#include "cpu/stream.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "base/unsupported.h"

namespace nnbt {
namespace {

constexpr StreamKernel kKernels[] = {
    {"read", 1, 0, 1, 0},   // sum += x[i]
    {"write", 0, 1, 0, 0},  // out[i] = s
    {"copy", 1, 1, 0, 8},   // out[i] = x[i]
    {"scale", 1, 1, 1, 0},  // out[i] = s * x[i]
    {"add", 2, 1, 1, 0},    // out[i] = x[i] + y[i]
    {"triad", 2, 1, 2, 0},  // out[i] = x[i] + s * y[i]
};
static_assert(std::size(kKernels) == kStreamKernels);

constexpr std::size_t kLine = 64 / sizeof(double);
constexpr std::int64_t kAutomaticBytesPerThread = std::int64_t{256} * 1024 * 1024;
constexpr double kPoison = -1;  // no expected value is negative

// Integers from 1 to 64 without a pattern in the index: all sums and products are exact, and an
// element from the wrong place is visible.
double input_value(std::size_t i, std::size_t which) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
  return 1.0 + static_cast<double>((i + which * 0x10001 + 1) * kGolden >> 58U);
}

std::size_t kernel_index(std::string_view name) {
  const auto* const row = std::ranges::find(kKernels, name, &StreamKernel::name);
  if (row != std::end(kKernels)) return static_cast<std::size_t>(row - std::begin(kKernels));
  std::string known;
  for (const StreamKernel& kernel : kKernels) {
    known += (known.empty() ? "" : ", ") + std::string(kernel.name);
  }
  throw Unsupported("Unknown STREAM kernel \"" + std::string(name) + "\": use one of " + known +
                    ".");
}

const StreamSet& choose_set(std::string_view isa) {
  const StreamSet* chosen = nullptr;
  std::string known;
  for (const StreamSet& set : stream_sets()) {
    known += (known.empty() ? "" : ", ") + std::string(set.isa);
    if (!isa.empty() && set.isa != isa) continue;
    const std::string reason = set.missing();
    if (reason.empty()) {
      chosen = &set;
    } else if (!isa.empty()) {
      throw Unsupported(reason);
    }
  }
  if (chosen != nullptr) return *chosen;
  throw Unsupported("There are no STREAM loops for \"" + std::string(isa) + "\": use one of " +
                    known + ".");
}

StreamPass choose_pass(std::string_view kernel, const StreamOptions& options) {
  const StreamCode& code = *choose_set(options.isa).code;
  const std::size_t index = kernel_index(kernel);
  const StreamPass pass = (options.nontemporal ? code.nontemporal : code.ordinary)[index];
  if (pass != nullptr) return pass;
  throw Unsupported("The kernel " + std::string(kernel) +
                    " stores nothing, so it has no non-temporal stores: run it without them.");
}

std::size_t element_count(const StreamOptions& options) {
  if (options.array_bytes < 0)
    throw std::invalid_argument("StreamStep: array_bytes must not be negative");
  constexpr std::int64_t kMost = std::int64_t{1}
                                 << 56;  // the sum of a few such arrays does not overflow
  if (options.array_bytes > kMost) {
    throw Unsupported("Arrays of " + std::to_string(options.array_bytes) +
                      " bytes exceed any machine's memory: use smaller arrays.");
  }
  return static_cast<std::size_t>(options.array_bytes) / 64 * kLine;
}

// If arrays start at the same offset within a page, loads wait for stores to aliased addresses
// (only the low 12 bits are compared at first), so each array starts 1152 bytes further into its
// page.
std::size_t array_stride(std::size_t count) {
  constexpr std::size_t kPage = 4096;
  return ((count * sizeof(double) + kPage - 1) / kPage * kPage) + 1152;
}

double* array_at(const Pages& pages, std::size_t count, int index) {
  return reinterpret_cast<double*>(static_cast<char*>(pages.data()) +
                                   array_stride(count) * static_cast<std::size_t>(index));
}

std::string number(double value) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value;
  return text.str();
}

}  // namespace

std::span<const StreamKernel> stream_kernels() { return kKernels; }

StreamStep::StreamStep(std::string_view kernel, const StreamOptions& options)
    : kernel_(kKernels[kernel_index(kernel)]),
      isa_(choose_set(options.isa).isa),
      pass_(choose_pass(kernel, options)),
      nontemporal_(options.nontemporal),
      count_(element_count(options)),
      team_(options.threads),
      pages_(array_stride(count_) * static_cast<std::size_t>(kernel_.reads + kernel_.writes)),
      x_(array_at(pages_, count_, 0)),
      y_(array_at(pages_, count_, kernel_.reads - 1)),
      out_(array_at(pages_, count_, kernel_.reads)),
      passes_(options.passes),
      sums_(static_cast<std::size_t>(team_.size())) {
  if (passes_ < 0) throw std::invalid_argument("StreamStep: passes must not be negative");
  const auto threads = static_cast<std::size_t>(team_.size());
  if (count_ < threads * kLine) {
    throw Unsupported("Arrays of " + std::to_string(options.array_bytes) +
                      " bytes are too small for " + std::to_string(threads) +
                      " threads: use at least " + std::to_string(threads * 64) + " bytes.");
  }
  if (passes_ == 0) {
    const std::int64_t pass_bytes = kernel_.counted_bytes() * static_cast<std::int64_t>(count_);
    const std::int64_t wanted = kAutomaticBytesPerThread * team_.size();
    passes_ = (wanted + pass_bytes - 1) / pass_bytes;
  }
  team_.run([this](int thread) {
    const Part part = part_of(thread);
    for (std::size_t i = part.begin; i < part.end; ++i) {
      if (kernel_.reads > 0) x_[i] = input_value(i, 0);
      if (kernel_.reads > 1) y_[i] = input_value(i, 1);
      if (kernel_.writes > 0) out_[i] = kPoison;
    }
  });
}

StreamStep::Part StreamStep::part_of(int thread) const {
  const auto threads = static_cast<std::size_t>(team_.size());
  const std::size_t lines = count_ / kLine;
  const auto index = static_cast<std::size_t>(thread);
  return {lines * index / threads * kLine, lines * (index + 1) / threads * kLine};
}

// Changes with every pass, so that the last pass leaves other values than it found.
double StreamStep::scalar(std::int64_t pass) const { return 2.0 + static_cast<double>(pass % 7); }

void StreamStep::pass_over(int thread, const Part& part, std::int64_t pass) {
  sums_[static_cast<std::size_t>(thread)].sum += pass_(
      out_ + part.begin, x_ + part.begin, y_ + part.begin, part.end - part.begin, scalar(pass));
}

void StreamStep::run() {
  team_.run([this](int thread) {
    const Part part = part_of(thread);
    for (std::int64_t pass = 0; pass < passes_; ++pass) {
      pass_over(thread, part, passes_done_ + pass);
    }
  });
  passes_done_ += passes_;
}

std::int64_t StreamStep::working_set_bytes() const {
  return array_bytes() * (kernel_.reads + kernel_.writes);
}

std::int64_t StreamStep::work_bytes() const {
  return kernel_.counted_bytes() * static_cast<std::int64_t>(count_) * passes_;
}

std::int64_t StreamStep::traffic_bytes() const {
  const int bytes = nontemporal_ ? kernel_.counted_bytes() : kernel_.write_allocate_bytes();
  return bytes * static_cast<std::int64_t>(count_) * passes_;
}

std::int64_t StreamStep::work_ops() const {
  return kernel_.operations * static_cast<std::int64_t>(count_) * passes_;
}

std::span<double> StreamStep::destination() { return {kernel_.writes > 0 ? out_ : x_, count_}; }

double StreamStep::expected(std::size_t i, double s) const {
  // Every kernel is out = s0 + s1 * x + s2 * y, determined by the number of arrays it reads and by
  // whether it multiplies.
  const double factor = kernel_.operations > kernel_.reads - 1 ? s : 1.0;
  if (kernel_.reads == 0) return s;
  if (kernel_.reads == 1) return factor * input_value(i, 0);
  return input_value(i, 0) + (factor * input_value(i, 1));
}

std::optional<std::string> StreamStep::check_contents() {
  const double s = scalar(passes_done_ - 1);
  std::atomic<std::size_t> first_wrong = count_;
  team_.run([&](int thread) {
    const Part part = part_of(thread);
    for (std::size_t i = part.begin; i < part.end; ++i) {
      const bool x_wrong = kernel_.reads > 0 && x_[i] != input_value(i, 0);
      const bool y_wrong = kernel_.reads > 1 && y_[i] != input_value(i, 1);
      const bool out_wrong = kernel_.writes > 0 && out_[i] != expected(i, s);
      if (!x_wrong && !y_wrong && !out_wrong) continue;
      std::size_t seen = first_wrong;
      while (i < seen && !first_wrong.compare_exchange_weak(seen, i)) {
      }
      break;
    }
  });
  const std::size_t i = first_wrong;
  if (i == count_) return std::nullopt;
  std::string text = "Kernel " + std::string(kernel_.name) + ": element " + std::to_string(i) +
                     " is wrong after " + std::to_string(passes_done_) + " passes (";
  if (kernel_.reads > 0) text += "x " + number(x_[i]) + ", ";
  if (kernel_.reads > 1) text += "y " + number(y_[i]) + ", ";
  if (kernel_.writes > 0) {
    text += "out " + number(out_[i]) + ", expected out " + number(expected(i, s));
  } else {
    text += "expected x " + number(input_value(i, 0));
  }
  return text + ").";
}

std::optional<std::string> StreamStep::check_sums(std::int64_t passes) {
  if (kernel_.writes > 0) return std::nullopt;
  double total = 0;
  for (const ThreadSum& thread : sums_) total += thread.sum;
  double per_pass = 0;
  for (std::size_t i = 0; i < count_; ++i) per_pass += input_value(i, 0);
  const double wanted = per_pass * static_cast<double>(passes);
  if (total == wanted) return std::nullopt;
  return "Kernel read: the sum over " + std::to_string(passes) + " passes is " + number(total) +
         " instead of " + number(wanted) + ": some data was not read.";
}

std::optional<std::string> StreamStep::verify() {
  if (passes_done_ == 0) return "Nothing has run yet, so there is no result to verify.";
  if (auto fault = check_contents()) return fault;
  if (auto fault = check_sums(passes_done_)) return fault;
  team_.run([this](int thread) {
    const Part part = part_of(thread);
    if (kernel_.writes > 0) std::fill(out_ + part.begin, out_ + part.end, kPoison);
    pass_over(thread, part, passes_done_);
  });
  ++passes_done_;
  if (auto fault = check_contents()) return fault;
  return check_sums(passes_done_);
}

}  // namespace nnbt
