#include "bindings.h"
#include "unsupported.h"

namespace nb = nanobind;

NB_MODULE(_native, m) {
  m.doc() = "Native part of nnbt: timing loop, probes, statistics.";
  nb::exception<nnbt::Unsupported>(m, "Unsupported", PyExc_RuntimeError).doc() =
      "Something this machine or library can't do; the text says what to do instead.";
  nnbt::bindings::add_measure(m);
  nnbt::bindings::add_conv(m);
}
