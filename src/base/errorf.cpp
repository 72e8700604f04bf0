#include "base/errorf.h"

#include <cstdarg>
#include <cstdio>

#include "base/utf8.h"

namespace tsq {
namespace {

std::string vstringf(const char* format, va_list args) {
  va_list copy;
  va_copy(copy, args);
  const int length = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, args);
  return text;
}

}  // namespace

std::string stringf(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = vstringf(format, args);
  va_end(args);
  return text;
}

Error errorf(ErrorCode code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = vstringf(format, args);
  va_end(args);
  return {code, std::move(text)};
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size() && out.size() < max_bytes) {
    const std::size_t length = utf8_sequence_length(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += stringf("\\x%02x", byte);
      i += 1;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  if (i < text.size()) out += "...";
  return out;
}

}  // namespace tsq
