// Python's str on UTF-8 bytes: positions are code points, and a byte that belongs to no valid
// sequence counts as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tsq::chat {

// Bytes of the first character: 1 to 4; 0 of an empty text.
std::size_t char_bytes(std::string_view text);
std::size_t count_chars(std::string_view text);
// Where the characters start, and where the last one ends.
std::vector<std::uint32_t> char_offsets(std::string_view text);
// U+FFFD for a byte that belongs to no character.
char32_t decode_char(std::string_view text);
void append_char(std::string& text, char32_t c);

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable
bool is_letter(char32_t c);     // str.isalpha
bool is_digit(char32_t c);      // str.isdigit, for the digits that are decimal

// As of std::string_view, but linear whatever the texts are.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);
std::size_t rfind_text(std::string_view text, std::string_view part);

// Without the leading, the trailing characters that are in chars (nullopt: white space).
enum class Side { left, right, both };
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Side side);

// Case, one character for one: of those that Unicode maps to several, only ß becomes SS.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string to_title(std::string_view text);
// Whether there are cased characters, all of them upper (lower).
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// float.__repr__: the shortest digits that give the number back.
std::string real_repr(double number);
std::string string_repr(std::string_view text);

// int(text, base) and float(text) of Python; nothing where they raise ValueError.
std::optional<std::int64_t> parse_int(std::string_view text, int base = 10);
std::optional<double> parse_real(std::string_view text);

}  // namespace tsq::chat
