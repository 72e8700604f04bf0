// What a model thinks and what it says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tsq::tool {

// Parts the text of an answer as it grows: a thought stands between <think>, which the prompt may
// have written already, and </think>. Only an answer's beginning may be a thought; some models
// write the <think> of the prompt again.
class ThoughtSplitter {
 public:
  enum class Kind { tag, thought, answer };
  struct Piece {
    Kind kind;
    std::string text;  // a tag's: with the white space before it
  };

  // in_thought: the prompt has begun one.
  explicit ThoughtSplitter(bool in_thought) : begun_(in_thought) {}

  // The pieces that are now certain, none of them empty: together with finish(), all of the text.
  std::vector<Piece> push(std::string_view text);
  std::vector<Piece> finish();

  bool in_thought() const {
    return state_ == State::thought || (state_ == State::beginning && begun_);
  }

 private:
  enum class State { beginning, thought, answer };
  const bool begun_;
  State state_ = State::beginning;
  std::string held_;  // may be the start of a tag
};

}  // namespace tsq::tool
