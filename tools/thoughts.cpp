#include "thoughts.h"

#include <algorithm>

namespace tsq::tool {
namespace {

constexpr std::string_view kOpen = "<think>", kClose = "</think>";

}  // namespace

std::vector<ThoughtSplitter::Piece> ThoughtSplitter::push(std::string_view text) {
  std::vector<Piece> pieces;
  const auto release = [&](Kind kind, std::size_t n) {
    if (n > 0) pieces.push_back({kind, held_.substr(0, n)});
    held_.erase(0, n);
  };
  held_ += text;
  if (state_ == State::beginning) {
    const auto start = std::min(held_.find_first_not_of(" \t\r\n"), held_.size());
    const std::string_view rest = std::string_view(held_).substr(start);
    if (rest.size() < kOpen.size() && kOpen.starts_with(rest)) return pieces;
    if (rest.starts_with(kOpen)) release(Kind::tag, start + kOpen.size());
    state_ = pieces.empty() && !begun_ ? State::answer : State::thought;
  }
  if (state_ == State::thought) {
    const std::size_t close = held_.find(kClose);
    if (close != std::string::npos) {
      release(Kind::thought, close);
      release(Kind::tag, kClose.size());
      state_ = State::answer;
    } else {
      std::size_t keep = std::min(held_.size(), kClose.size() - 1);
      while (!std::string_view(held_).ends_with(kClose.substr(0, keep))) --keep;
      release(Kind::thought, held_.size() - keep);
    }
  }
  if (state_ == State::answer) release(Kind::answer, held_.size());
  return pieces;
}

std::vector<ThoughtSplitter::Piece> ThoughtSplitter::finish() {
  if (held_.empty()) return {};
  const Kind kind = in_thought() ? Kind::thought : Kind::answer;
  return {{kind, std::move(held_)}};
}

}  // namespace tsq::tool
