// The files that the doubles write where MPSGraph writes its own.
#pragma once

#include <string>

#include "graph_state.h"

namespace doubles {

struct Compiled {
  Graph graph;
  bool on_ane = false;
  std::string archive;  // temporary directory of compiled regions
};

// Makes the archive directory, with one or two regions for a graph on the ANE.
std::string make_archive(const Compiled& compiled);
void remove_archive(const std::string& directory);

// Writes a package directory; under the faults disk_full and disk_full_silent only part of it.
void write_package(const Compiled& compiled, const std::string& directory);

// The graph that this process saved to a package, or compiled to a region's file; an empty one if
// it didn't.
Graph read_package(const std::string& directory);
Graph read_region(const std::string& file);

// MPSGraph executables that are alive: the engine refuses to load a program twice.
long count_executables(long change);

}  // namespace doubles
