// Which kernels run: CPU detection, the tables, the choice. The only code that compares ISAs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/kernels.h"

namespace tsq::kernels {

// What this CPU and its operating system offer. Tests forge one.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false;                                // level avx2
  bool avx_vnni = false;                                                       // level avxvnni
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;  // level avx512 ...
  bool avx512_vnni = false, avx512_vbmi = false;  // ... needs these too
};

// Asks CPUID, and XGETBV whether the system saves the registers.
CpuFeatures detect_cpu() noexcept;

bool supports(const CpuFeatures& cpu, Isa isa) noexcept;

std::string_view isa_name(Isa isa) noexcept;
std::optional<Isa> isa_from_name(std::string_view name) noexcept;

// The levels built into this binary, and those of them that the CPU has: lowest first.
std::span<const Isa> built_isas() noexcept;
std::span<const Isa> supported_isas() noexcept;

// The table of a level; null where it is not built or not supported here.
const Kernels* table(Isa isa) noexcept;

// The choice for this process: TSQ_ISA where set and not empty, else the best level. A null table
// comes with a message: TSQ_ISA names something unknown or not supported here.
struct Choice {
  const Kernels* kernels;
  std::string error;
};
Choice choose(const CpuFeatures& cpu, const char* tsq_isa);
const Choice& chosen();  // choose(detect_cpu(), getenv("TSQ_ISA")), once

}  // namespace tsq::kernels
