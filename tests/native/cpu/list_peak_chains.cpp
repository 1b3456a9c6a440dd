// Prints the rows of the peak table, one per line, in columns separated by tabs: name, instruction,
// instructions, operations, address of the code in this file, why it cannot run.
#include <cstdio>
#include <string>

#include "cpu/peak.h"

int main() {
  for (const nnbt::PeakChain& chain : nnbt::peak_chains()) {
    const nnbt::ChainWork work = chain.work();
    std::printf("%s\t%s\t%lld\t%lld\t%lld\t%s\n", std::string(chain.name).c_str(),
                std::string(chain.instruction).c_str(), static_cast<long long>(work.instructions),
                static_cast<long long>(work.operations),
                static_cast<long long>(chain.code_offset()), chain.unusable().c_str());
  }
}
