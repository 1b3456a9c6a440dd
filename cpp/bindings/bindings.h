// One function per topic adds its classes and functions to nnbt._native. No other folder includes
// nanobind.
#pragma once

#include <nanobind/nanobind.h>

namespace nnbt::bindings {

void add_ane(nanobind::module_& m);
void add_ceilings(nanobind::module_& m);
void add_conv(nanobind::module_& m);
void add_measure(nanobind::module_& m);

}  // namespace nnbt::bindings
