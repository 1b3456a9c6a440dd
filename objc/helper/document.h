// Parts of the helper's documents: each function writes one JSON value, or members of an object.
#pragma once

#include <string>

#include "ane/replay.h"
#include "base/json_writer.h"
#include "conv/check.h"
#include "macos/ane_info.h"
#include "measure/measure.h"
#include "package/placement.h"

namespace nnbt {

// All fields of Samples, so that the caller can rebuild it.
void add_samples(json::Object& out, const Samples& samples);

void add_placement(json::Object& out, const PlacementVerdict& verdict);

std::string check_json(const ConvCheck& check);

// Registers are raw: the caller decodes them.
std::string replay_json(const ane::Replay& replay);

std::string info_json(const ane::Info& info, std::optional<bool> entitled);

// {"status": status, "message": sentence}
std::string refusal_json(const char* status, const std::string& sentence);

}  // namespace nnbt
