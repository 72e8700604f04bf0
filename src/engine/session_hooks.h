// A Session whose projections are watched: for tests.
#pragma once

#include <functional>

#include "backend/cpu.h"
#include "tsq/session.h"

namespace tsq {

// Session::create, with an observer that sees every matrix of every projection.
Result<Session> create_session(const Model& model, const SessionOptions& options,
                               const std::function<void(const ProjectionTrace&)>& observer);

}  // namespace tsq
