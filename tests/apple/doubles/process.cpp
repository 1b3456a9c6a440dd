// Doubles of Darwin's accounting of the own process and of its 24 MHz clock. Each reading advances
// by the same amounts.
#include <libproc.h>
#include <mach/mach_time.h>
#include <unistd.h>

#include "fault.h"

extern "C" int proc_pid_rusage(int pid, int flavor, rusage_info_t* buffer) {
  if (doubles::fault("no_rusage") || pid != getpid() || flavor != RUSAGE_INFO_V6) return -1;
  static std::uint64_t reading = 0;
  ++reading;
  auto& usage = *reinterpret_cast<rusage_info_v6*>(buffer);
  usage = {.ri_instructions = 8'000'000 * reading, .ri_cycles = 3'000'000 * reading};
  if (doubles::fault("no_pmu")) usage.ri_instructions = usage.ri_cycles = 0;
  if (doubles::fault("rusage_backwards")) usage.ri_cycles = ~usage.ri_cycles;
  return 0;
}

extern "C" int mach_timebase_info(mach_timebase_info_data_t* info) {
  *info = {.numer = 125, .denom = 3};
  return 0;
}
