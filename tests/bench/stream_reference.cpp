// The reference for bandwidth: the four kernels that STREAM defines (J. McCalpin, "Memory Bandwidth
// and Machine Balance in Current High Performance Computers", 1995), with plain fill and sum, as a
// compiler makes them from loops. Reads kernel names, one a line, and answers each with the
// nanoseconds of one pass.
//
// g++ -O3 -march=native -fopenmp stream_reference.cpp -o stream_reference && ./stream_reference N
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

namespace {

using Array = std::unique_ptr<double[]>;

double one_pass(const std::string& kernel, double* a, double* b, double* c, long n) {
  const double scalar = 3.0;
  double sum = 0;
  if (kernel == "copy") {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) c[i] = a[i];
  } else if (kernel == "scale") {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) b[i] = scalar * c[i];
  } else if (kernel == "add") {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];
  } else if (kernel == "triad") {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) a[i] = b[i] + scalar * c[i];
  } else if (kernel == "write") {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) a[i] = scalar;
  } else if (kernel == "read") {
#pragma omp parallel for simd reduction(+ : sum)
    for (long i = 0; i < n; ++i) sum += a[i];
  } else {
    std::exit(2);
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const long n = argc > 1 ? std::atol(argv[1]) : 16'000'000;
  const Array a(new double[static_cast<std::size_t>(n)]);
  const Array b(new double[static_cast<std::size_t>(n)]);
  const Array c(new double[static_cast<std::size_t>(n)]);
#pragma omp parallel for
  for (long i = 0; i < n; ++i) {
    a[i] = 1.0;
    b[i] = 2.0;
    c[i] = 0.0;
  }
  volatile double sink = 0;
  for (std::string kernel; std::cin >> kernel;) {
    const auto start = std::chrono::steady_clock::now();
    sink = one_pass(kernel, a.get(), b.get(), c.get(), n);
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start;
    std::printf("%lld\n", static_cast<long long>(time.count()));
    std::fflush(stdout);
  }
  return sink < 0 ? 1 : 0;
}
