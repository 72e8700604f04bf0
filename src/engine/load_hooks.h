// Opening a model as tests need it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "kernels/kernels.h"
#include "tsq/loader.h"

namespace tsq {

struct LoadHooks {
  const kernels::Kernels* kernels = nullptr;  // repack for them, not for the process's choice
  std::uint64_t memory = 0;                   // bytes available, whatever the machine has
};

Result<Model> load_model(const std::filesystem::path& path, const LoaderOptions& options,
                         const LoadHooks& hooks);

}  // namespace tsq
