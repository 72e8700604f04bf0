// Control tokens that somebody wrote into a message stay text, those of the template are tokens.
#pragma once

#include <string>

#include "chat/chat_template.h"
#include "tsq/tokenizer.h"

namespace tsq::chat {

struct Guarded {
  Json messages;
  std::string mark;  // EncodeOptions::guard for what is rendered of them
};

// The messages with the mark, a noncharacter that is nowhere in them, behind the first character of
// every control token's text in their strings. A control token of one character cannot be guarded.
// invalid_argument where the messages hold every noncharacter from U+FDD0 to U+FDEF.
Result<Guarded> guard(const Json& messages, const Tokenizer& tokenizer);

}  // namespace tsq::chat
