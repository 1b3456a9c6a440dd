// The files that the doubles write in place of MPSGraph's.
#pragma once

#include <string>

#include "graph_state.h"

namespace doubles {

struct Compiled {
  Graph graph;
  bool on_ane = false;
  std::string archive;  // temporary directory of compiled regions
};

// Creates the archive directory, with one or two regions for a graph on the ANE.
std::string make_archive(const Compiled& compiled);
void remove_archive(const std::string& directory);

// Writes a package directory; with the faults disk_full and disk_full_silent, only part of it.
void write_package(const Compiled& compiled, const std::string& directory);

// The graph that this process saved to a package, or compiled to the file of a region; empty if
// there is none.
Graph read_package(const std::string& directory);
Graph read_region(const std::string& file);

// Number of live MPSGraph executables: the engine refuses to load a program twice.
long count_executables(long change);

}  // namespace doubles
