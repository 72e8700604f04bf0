// A conversation at the terminal, or line by line through a pipe.
#pragma once

#include <optional>
#include <string>

#include "dialogue.h"
#include "generation.h"

namespace tsq::tool {

struct ChatOptions {
  DialogueOptions dialogue;
  std::int32_t think_budget = -1;  // tokens of thought before an answer has to begin; -1: no limit
  bool single_turn = false;        // ends after one answer
  std::string history_file;
  bool timings = true;
};

// Talks until the user has enough; `first` is the first message, if there is one already. Gives the
// exit code.
int chat(const Model& model, Session& session, Sampler& sampler,
         const GenerationOptions& generation, const ChatOptions& options,
         const std::optional<std::string>& first);

}  // namespace tsq::tool
