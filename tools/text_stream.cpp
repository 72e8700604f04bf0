#include "text_stream.h"

#include <algorithm>

#include "base/utf8.h"

namespace tsq::tool {
namespace {

// Bytes at the end of text that are the start, but not the whole, of stop.
std::size_t partial_match(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (text.ends_with(stop.substr(0, n))) return n;
  return 0;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  std::size_t first_stop = std::string::npos;
  std::size_t keep = utf8_incomplete_tail(held_);
  for (const std::string& stop : stops_) {
    first_stop = std::min(first_stop, held_.find(stop));
    keep = std::max(keep, partial_match(held_, stop));
  }
  if (first_stop != std::string::npos) {
    stopped_ = true;
    return release(first_stop);
  }
  return release(held_.size() - keep);
}

std::string TextStream::finish() {
  return stopped_ ? std::string() : release(held_.size() - utf8_incomplete_tail(held_));
}

std::string TextStream::release(std::size_t bytes) {
  std::string text = utf8_replace_invalid(std::string_view(held_).substr(0, bytes));
  held_.erase(0, bytes);
  return text;
}

}  // namespace tsq::tool
