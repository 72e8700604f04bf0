#include "chat/guard.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/utf8.h"

namespace tsq::chat {
namespace {

// The strings in JSON, but for its keys. What is nested too deep for a template is left out.
void for_each_string(Json& json, const std::function<void(std::string&)>& visit, int depth = 0) {
  if (depth > kMaxValueDepth) return;
  if (json.is_string()) {
    visit(json.get_ref<std::string&>());
  } else if (json.is_structured()) {
    for (Json& item : json) for_each_string(item, visit, depth + 1);
  }
}

std::vector<std::string_view> control_texts(const Tokenizer& tokenizer) {
  std::vector<std::string_view> texts;
  for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
    const std::string_view text = tokenizer.bytes(token);
    if (tokenizer.is_control(token) && text.size() > utf8_sequence_length(text)) {
      texts.push_back(text);
    }
  }
  return texts;
}

}  // namespace

Result<Guarded> guard(const Json& messages, const Tokenizer& tokenizer) {
  Guarded guarded{messages, {}};
  std::vector<std::string*> strings;
  for_each_string(guarded.messages, [&](std::string& text) { strings.push_back(&text); });
  for (int last = 0x90; last <= 0xaf && guarded.mark.empty(); ++last) {  // U+FDD0 to U+FDEF
    const std::string mark = {'\xef', '\xb7', static_cast<char>(last)};
    const auto holds = [&](const std::string* s) { return s->find(mark) != std::string::npos; };
    if (std::none_of(strings.begin(), strings.end(), holds)) guarded.mark = mark;
  }
  if (guarded.mark.empty()) {
    return Error(ErrorCode::invalid_argument,
                 "the messages hold every noncharacter from U+FDD0 to U+FDEF, expected one free");
  }
  for (const std::string_view control : control_texts(tokenizer)) {
    const std::size_t first = std::max<std::size_t>(1, utf8_sequence_length(control));
    for (std::string* text : strings) {
      for (std::size_t at = 0; (at = text->find(control, at)) != std::string::npos;) {
        text->insert(at + first, guarded.mark);
        at += first;
      }
    }
  }
  return guarded;
}

}  // namespace tsq::chat
