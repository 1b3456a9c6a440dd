// The helper process: measures one convolution chain, optionally with Neural Engine counters, and
// exits. MPSGraph can abort the process, so risky variants run here and the caller maps the exit to
// a status; and only a main executable can have the entitlement for counters.
//
// Reads a JSON object from standard input and writes a JSON document to standard output. Output of
// frameworks goes to standard error. Exit status 0 means that a document was written, also for
// refusals.
#include <unistd.h>

#include <exception>
#include <iostream>
#include <iterator>
#include <string>

#include "base/unsupported.h"
#include "document.h"
#include "operations.h"
#include "request.h"

namespace {

using namespace nnbt;

std::string answer(const std::string& text) {
  try {
    return perform(parse_request(text));
  } catch (const Unsupported& problem) {
    return refusal_json("unsupported", problem.what());
  } catch (const std::exception& problem) {
    return refusal_json("error", problem.what());
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
