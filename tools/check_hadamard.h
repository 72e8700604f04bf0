// `tsq run --check-hadamard`: what the rotations do to the activations of a prompt.
#pragma once

#include <span>

#include "engine.h"

namespace tsq::tool {

// Runs the tokens once on a session of its own and prints a table on stderr, or that the model has
// no rotation. An error (numeric) where a rotation is not what its definition says.
Result<void> check_hadamard(const Model& model, const EngineOptions& options,
                            std::span<const Token> tokens);

}  // namespace tsq::tool
