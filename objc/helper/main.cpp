// The helper process: measures one convolution chain and ends. MPSGraph can abort the process, so
// risky variants run here and the caller maps the exit to a status.
//
// Reads one JSON object from standard input, writes one JSON document to standard output. Whatever
// frameworks print goes to standard error. Exit status 0: a document was written, also for
// refusals.
#include <unistd.h>

#include <cmath>
#include <exception>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "conv_check.h"
#include "measure.h"
#include "request.h"
#include "unsupported.h"

namespace {

using namespace nnbt;

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* kDigits = "0123456789abcdef";
      out << "\\u00" << kDigits[(c >> 4) & 0xF] << kDigits[c & 0xF];
    } else {
      out << c;
    }
  }
  out << '"';
  return out.str();
}

const char* boolean(bool value) { return value ? "true" : "false"; }

void write_check(std::ostream& out, const ConvCheck& check) {
  out << ", \"check\": {\"ok\": " << boolean(check.ok) << ", \"compared\": " << check.compared
      << ", \"relative_error\": "
      << (std::isfinite(check.relative_error) ? check.relative_error : -1)
      << ", \"zero_fraction\": " << check.zero_fraction << ", \"non_finite\": " << check.non_finite
      << ", \"detail\": " << quoted(check.detail) << "}";
}

void write_placement(std::ostream& out, const PlacementVerdict& verdict) {
  out << ", \"placement\": " << quoted(placement_name(verdict.placement)) << ", \"evidence\": [";
  const char* separator = "";
  for (const std::string& line : verdict.evidence) {
    out << separator << quoted(line);
    separator = ", ";
  }
  out << "]";
}

std::string measured(const HelperRequest& request) {
  const std::unique_ptr<ConvStep> step = make_conv(request.spec, request.package);
  const Samples samples = measure(*step, request.measure);
  std::ostringstream out;
  out << "{\"status\": \"ok\", \"device_name\": " << quoted(step->device_name())
      << ", \"spec\": " << to_json(step->spec()) << ", \"compile_ns\": " << step->compile_ns()
      << ", \"first_run_ns\": " << samples.first_run_ns
      << ", \"warmup_runs\": " << samples.warmup_runs << ", \"samples_ns\": [";
  const char* separator = "";
  for (const std::int64_t sample : samples.samples_ns) {
    out << separator << sample;
    separator = ", ";
  }
  out << "]";
  write_check(out, check_conv(step->spec(), step->output()));
  if (request.placement && request.spec.device == ConvDevice::kAne) {
    write_placement(out, judge_placement(step->placement(), {}, {}));
  }
  if (!request.save_package.empty()) {
    out << ", \"package_note\": " << quoted(step->save_package(request.save_package));
  }
  out << "}";
  return out.str();
}

std::string refused(const char* status, const std::exception& problem) {
  return std::string("{\"status\": \"") + status + "\", \"message\": " + quoted(problem.what()) +
         "}";
}

std::string answer(const std::string& text) {
  try {
    return measured(parse_request(text));
  } catch (const Unsupported& problem) {
    return refused("unsupported", problem);
  } catch (const std::exception& problem) {
    return refused("error", problem);
  }
}

}  // namespace

int main() {
  const std::string request{std::istreambuf_iterator<char>(std::cin), {}};
  const int document = dup(STDOUT_FILENO);
  if (document < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  const std::string text = answer(request) + "\n";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(document, text.data() + written, text.size() - written);
    if (count <= 0) return 1;
    written += static_cast<std::size_t>(count);
  }
  return 0;
}
