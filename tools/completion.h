// Scripts that make a shell complete the tool's command line.
#pragma once

#include <string>
#include <vector>

#include "command_spec.h"

namespace tsq::tool {

std::string bash_completion(const std::vector<CommandSpec>& commands);
std::string zsh_completion(const std::vector<CommandSpec>& commands);
std::string fish_completion(const std::vector<CommandSpec>& commands);

}  // namespace tsq::tool
