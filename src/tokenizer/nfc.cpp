// utf8proc has the tables and composes; its own reordering of marks is quadratic in their number,
// so the marks are ordered here.
//
// utf8proc 2.8 takes U+11A7, which stands before the first of the final consonants of Hangul, for
// one of them and drops it. Nothing composes with it: the text is composed in parts that end there.
#include "tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tsq {
namespace {

constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
constexpr std::size_t kLongest = 4;  // code points that one decomposes to
constexpr std::int32_t kBeforeFinals = 0x11a7;

int combining_class(std::int32_t character) {
  return utf8proc_get_property(character)->combining_class;
}

std::vector<std::int32_t> decompose(std::string_view text) {
  std::vector<std::int32_t> characters;
  characters.reserve(text.size());
  const auto* next = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* const end = next + text.size();
  while (next != end) {
    std::int32_t character = 0;
    next += utf8proc_iterate(next, end - next, &character);
    std::int32_t parts[kLongest];
    int boundary_state = 0;
    const auto n = utf8proc_decompose_char(character, parts, kLongest, kOptions, &boundary_state);
    characters.insert(characters.end(), parts, parts + n);
  }
  return characters;
}

void order_marks(std::vector<std::int32_t>& characters) {
  const auto is_mark = [](std::int32_t character) { return combining_class(character) != 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if(begin, characters.end(), is_mark);
    const auto end = std::find_if_not(begin, characters.end(), is_mark);
    std::ranges::stable_sort(begin, end, {}, combining_class);
    begin = end;
  }
}

// Composes them in place and gives what is left of them.
std::span<const std::int32_t> compose(std::span<std::int32_t> characters) {
  const auto n = utf8proc_normalize_utf32(
      characters.data(), static_cast<utf8proc_ssize_t>(characters.size()), kOptions);
  return characters.first(static_cast<std::size_t>(n));
}

void append_utf8(std::span<const std::int32_t> characters, std::string& text) {
  for (const std::int32_t character : characters) {
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(character, bytes);
    text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
  }
}

}  // namespace

bool may_need_nfc(std::string_view text) {
  // What is below U+0300 neither decomposes for good nor combines; 0xcc is that one's first byte.
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0xcc; });
}

std::string to_nfc(std::string_view text) {
  std::vector<std::int32_t> characters = decompose(text);
  order_marks(characters);
  std::string composed;
  composed.reserve(text.size());
  for (std::span<std::int32_t> rest(characters); !rest.empty();) {
    const auto before = std::ranges::find(rest, kBeforeFinals);
    const auto length = static_cast<std::size_t>(before - rest.begin());
    append_utf8(compose(rest.first(length)), composed);
    if (before == rest.end()) break;
    append_utf8(rest.subspan(length, 1), composed);
    rest = rest.subspan(length + 1);
  }
  return composed;
}

}  // namespace tsq
