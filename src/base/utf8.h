// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tsq {

// Bytes of the valid sequence that text starts with: 1 to 4; 0 if it starts with none.
std::size_t utf8_sequence_length(std::string_view text);

// Whether more bytes could turn text, which is the start of one sequence, into a valid one.
bool utf8_is_incomplete(std::string_view text);

// Bytes at the end of text that are the start of an unfinished sequence (0 to 3).
std::size_t utf8_incomplete_tail(std::string_view text);

bool utf8_is_valid(std::string_view text);

// The text with U+FFFD for every byte that is none of it.
std::string utf8_replace_invalid(std::string_view text);

// Appends a code point.
void utf8_append(std::string& text, char32_t character);

}  // namespace tsq
