// What a report must know about a run: Google Benchmark's context lacks the CPU's name and the
// command.
#pragma once

namespace tsq::bench {

// Before benchmark::Initialize, which takes arguments away.
void add_context(int argc, const char* const* argv);

}  // namespace tsq::bench
