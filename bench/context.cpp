#include "bench/context.h"

#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

#include "base/thread_pool.h"

namespace tsq::bench {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

}  // namespace

void add_context(int argc, const char* const* argv) {
  std::string command = argv[0];
  for (int i = 1; i < argc; ++i) command.append(" ").append(argv[i]);
  benchmark::AddCustomContext("command", command);
  benchmark::AddCustomContext("cpu", cpu_name());
  benchmark::AddCustomContext("cores", std::to_string(usable_cores()));
}

}  // namespace tsq::bench
