#include "base/utf8.h"

#include <algorithm>

namespace tsq {
namespace {

struct Lead {
  std::size_t length;       // 0: no sequence starts with this byte
  unsigned char low, high;  // range of the second byte
};

Lead classify(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

// How many of the first bytes of text fit the sequence that its first byte announces.
std::size_t matching_bytes(std::string_view text, Lead lead) {
  const std::size_t n = std::min(text.size(), lead.length);
  for (std::size_t i = 1; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : byte >= 0x80 && byte <= 0xbf;
    if (!fits) return i;
  }
  return n;
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = classify(static_cast<unsigned char>(text[0]));
  return lead.length != 0 && matching_bytes(text, lead) == lead.length ? lead.length : 0;
}

bool utf8_is_incomplete(std::string_view text) {
  if (text.empty()) return false;
  const Lead lead = classify(static_cast<unsigned char>(text[0]));
  return text.size() < lead.length && matching_bytes(text, lead) == text.size();
}

std::size_t utf8_incomplete_tail(std::string_view text) {
  for (std::size_t n = std::min<std::size_t>(3, text.size()); n > 0; --n) {
    if (utf8_is_incomplete(text.substr(text.size() - n))) return n;
  }
  return 0;
}

bool utf8_is_valid(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string utf8_replace_invalid(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    valid += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

void utf8_append(std::string& text, char32_t character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
    return;
  }
  const int tails = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLead[tails] | character >> (6 * tails));
  for (int i = tails - 1; i >= 0; --i)
    text += static_cast<char>(0x80 | ((character >> (6 * i)) & 0x3f));
}

}  // namespace tsq
