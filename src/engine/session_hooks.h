// Sessions as tests need them.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/cpu.h"
#include "tsq/session.h"

namespace tsq {

struct SessionHooks {
  const kernels::Kernels* kernels = nullptr;  // instead of the process's choice
  int threads = 0;                            // exactly so many, whatever the machine has
  std::uint64_t memory = 0;                   // bytes available, whatever the machine has
  // Sees every matrix of every projection.
  std::function<void(const ProjectionTrace&)> observer;
};

Result<Session> create_session(const Model& model, const SessionOptions& options,
                               const SessionHooks& hooks);

}  // namespace tsq
