// Sessions as tests and checks need them.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/tracing.h"
#include "tsq/session.h"

namespace tsq {

struct SessionHooks {
  const kernels::Kernels* kernels = nullptr;  // instead of the process's choice
  int threads = 0;                            // exactly so many, whatever the machine has
  std::uint64_t memory = 0;                   // bytes available, whatever the machine has
  // Sees every matrix of every projection.
  std::function<void(const ProjectionTrace&)> observer;
  // Filled while the session runs, which it must outlive.
  ActivationTrace* trace = nullptr;
};

Result<Session> create_session(const Model& model, const SessionOptions& options,
                               const SessionHooks& hooks);

}  // namespace tsq
