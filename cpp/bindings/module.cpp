#include "base/unsupported.h"
#include "bindings/bindings.h"

namespace nb = nanobind;

NB_MODULE(_native, m) {
  m.doc() = "Native part of nnbt: timing loop, probes, statistics.";
  // An exception at interpreter exit keeps objects alive; a leak report would only hide it.
  nb::set_leak_warnings(false);
  nb::exception<nnbt::Unsupported>(m, "Unsupported", PyExc_RuntimeError).doc() =
      "This machine or library cannot do something; the text says what to do instead.";
  nnbt::bindings::add_ane(m);
  nnbt::bindings::add_measure(m);
  nnbt::bindings::add_ceilings(m);
  nnbt::bindings::add_conv(m);
}
