// The printable alphabet in which GPT-2's vocabulary files write bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tsq {

// The bytes that a token or merge of such a file stands for; nothing where a character is not of
// the alphabet. Bytes ! to ~, 0xa1 to 0xac and 0xae to 0xff are written as the character of their
// number, the other 68 in ascending order as U+0100 and on.
std::optional<std::string> bytes_from_gpt2_alphabet(std::string_view text);

}  // namespace tsq
