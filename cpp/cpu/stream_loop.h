// The loops of the STREAM kernels, included by files that are compiled with the flags of one
// instruction set. The rules on linkage in peak_loop.h apply here too.
#pragma once

#include "cpu/isa_code.h"

namespace nnbt {
namespace {

template <int bytes>
using VectorOf [[gnu::vector_size(bytes), gnu::may_alias]] = double;

// A Stores type has: kBytes of a vector; nontemporal(double*, vector), a store that bypasses the
// caches; fence(), which waits for such stores.
template <class Stores>
using Vector = VectorOf<Stores::kBytes>;

constexpr std::size_t kLine = 8;           // doubles in 64 bytes, the unit of partitioning
constexpr std::size_t kVectorsAtOnce = 8;  // for enough loads in flight and independent sums

template <class Stores>
[[gnu::always_inline]] inline Vector<Stores> load(const double* p) {
  return *reinterpret_cast<const Vector<Stores>*>(p);
}

template <class Stores, bool nontemporal>
[[gnu::always_inline]] inline void store(double* p, Vector<Stores> value) {
  if constexpr (nontemporal) {
    Stores::nontemporal(p, value);
  } else {
    *reinterpret_cast<Vector<Stores>*>(p) = value;
  }
}

// out[i] = op(in[i]...) over `count` doubles.
template <class Stores, bool nontemporal, std::size_t count, class Op, class... In>
[[gnu::always_inline]] inline void map_block(double* out, Op op, const In*... in) {
  constexpr std::size_t kWidth = Stores::kBytes / sizeof(double);
#pragma GCC unroll 8
  for (std::size_t j = 0; j < count; j += kWidth) {
    store<Stores, nontemporal>(out + j, op(load<Stores>(in + j)...));
  }
  // Compilers replace ordinary loops of loads and stores by memcpy or memset, which decide
  // themselves when to bypass the caches. This prevents it.
  asm volatile("" : : : "memory");
}

template <class Stores, bool nontemporal, class Op, class... In>
[[gnu::always_inline]] inline double map(double* out, std::size_t n, Op op, const In*... in) {
  constexpr std::size_t kBlock = kVectorsAtOnce * Stores::kBytes / sizeof(double);
  std::size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    map_block<Stores, nontemporal, kBlock>(out + i, op, (in + i)...);
  }
  for (; i < n; i += kLine) map_block<Stores, nontemporal, kLine>(out + i, op, (in + i)...);
  if constexpr (nontemporal) Stores::fence();
  return 0;
}

template <class Stores>
double read_pass(double* /*out*/, const double* x, const double* /*y*/, std::size_t n,
                 double /*s*/) {
  constexpr std::size_t kWidth = Stores::kBytes / sizeof(double);
  constexpr std::size_t kBlock = kVectorsAtOnce * kWidth;
  Vector<Stores> sums[kVectorsAtOnce] = {};
  std::size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < kVectorsAtOnce; ++j) sums[j] += load<Stores>(x + i + j * kWidth);
  }
  for (; i < n; i += kWidth) sums[0] += load<Stores>(x + i);
  // Vectors first: lane by lane this costs as much as 8 KiB of the loop above.
#pragma GCC unroll 8
  for (std::size_t j = 1; j < kVectorsAtOnce; ++j) sums[0] += sums[j];
  double sum = 0;
#pragma GCC unroll 8
  for (std::size_t lane = 0; lane < kWidth; ++lane) sum += sums[0][lane];
  return sum;
}

template <class Stores, bool nontemporal>
double write_pass(double* out, const double* /*x*/, const double* /*y*/, std::size_t n, double s) {
  const Vector<Stores> value = s - Vector<Stores>{};
  return map<Stores, nontemporal>(out, n, [value] { return value; });
}

template <class Stores, bool nontemporal>
double copy_pass(double* out, const double* x, const double* /*y*/, std::size_t n, double /*s*/) {
  return map<Stores, nontemporal>(out, n, [](Vector<Stores> u) { return u; }, x);
}

template <class Stores, bool nontemporal>
double scale_pass(double* out, const double* x, const double* /*y*/, std::size_t n, double s) {
  return map<Stores, nontemporal>(out, n, [s](Vector<Stores> u) { return s * u; }, x);
}

template <class Stores, bool nontemporal>
double add_pass(double* out, const double* x, const double* y, std::size_t n, double /*s*/) {
  const auto op = [](Vector<Stores> u, Vector<Stores> v) { return u + v; };
  return map<Stores, nontemporal>(out, n, op, x, y);
}

template <class Stores, bool nontemporal>
double triad_pass(double* out, const double* x, const double* y, std::size_t n, double s) {
  const auto op = [s](Vector<Stores> u, Vector<Stores> v) { return u + s * v; };
  return map<Stores, nontemporal>(out, n, op, x, y);
}

template <class S>
constexpr StreamCode stream_code{{read_pass<S>, write_pass<S, false>, copy_pass<S, false>,
                                  scale_pass<S, false>, add_pass<S, false>, triad_pass<S, false>},
                                 {nullptr, write_pass<S, true>, copy_pass<S, true>,
                                  scale_pass<S, true>, add_pass<S, true>, triad_pass<S, true>}};

}  // namespace
}  // namespace nnbt
