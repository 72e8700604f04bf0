// Templates, parsed as Jinja does it with the loop controls and transformers' {% generation %}.
#pragma once

#include <string_view>

#include "chat/ast.h"

namespace tsq::chat {

// Throws Failure.
Body parse_template(std::string_view source);

}  // namespace tsq::chat
