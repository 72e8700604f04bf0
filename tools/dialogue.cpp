#include "dialogue.h"

#include <algorithm>

#include "base/errorf.h"
#include "base/utf8.h"
#include "chat/guard.h"
#include "log.h"
#include "support.h"

namespace tsq::tool {
namespace {

using chat::Json;

std::string text_of(const Tokenizer& tokenizer, std::optional<Token> token) {
  return token ? std::string(tokenizer.bytes(*token)) : std::string();
}

chat::ChatTemplate make_template(const Model& model, const DialogueOptions& options) {
  const Tokenizer& tokenizer = *model.tokenizer();
  std::optional<std::string_view> text = model.chat_template();
  if (options.template_text) text = *options.template_text;
  return chat::ChatTemplate(text, text_of(tokenizer, tokenizer.bos()),
                            text_of(tokenizer, tokenizer.eos()));
}

bool ends_in_open_thought(std::string_view prompt) {
  const auto last = prompt.find_last_not_of(" \t\r\n");
  return last != prompt.npos && prompt.substr(0, last + 1).ends_with("<think>");
}

// Bytes, of whole characters.
std::size_t common_beginning(std::string_view a, std::string_view b) {
  auto same = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                       a.begin());
  while (same > 0 && same < a.size() && (a[same] & '\xc0') == '\x80') --same;
  return same;
}

// Brackets within brackets, outside strings: what is nested deep is slow to copy, or worse.
int nesting(std::string_view json) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return deepest;
}

Result<Json> parse_messages(std::string_view text) {
  const auto wrong = [](const std::string& what) {
    return Error(ErrorCode::invalid_argument, what);
  };
  if (const int depth = nesting(text); depth > chat::kMaxValueDepth)
    return wrong(
        stringf("nested %d levels deep, expected at most %d", depth, chat::kMaxValueDepth));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("no JSON, expected a saved conversation");
  const Json* messages = &json;
  if (json.is_object()) {
    const auto found = json.find("messages");
    if (found == json.end()) return wrong("no \"messages\", expected a saved conversation");
    messages = &*found;
  }
  if (!messages->is_array()) return wrong("messages: not a list, expected one");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const Json& message = (*messages)[i];
    for (const char* key : {"role", "content"}) {
      if (!message.is_object() || !message.contains(key) || !message[key].is_string())
        return wrong(stringf("message %zu: no \"%s\", expected a string", i, key));
    }
  }
  return *messages;
}

}  // namespace

Dialogue::Dialogue(const Model& model, const DialogueOptions& options)
    : tokenizer_(*model.tokenizer()),
      template_(make_template(model, options)),
      system_(Json::array()) {
  if (!options.system.empty())
    system_.push_back(chat::message("system", utf8_replace_invalid(options.system)));
  messages_ = system_;
  if (options.think) variables_["enable_thinking"] = *options.think;
}

void Dialogue::say(std::string_view text) {
  messages_.push_back(chat::message("user", utf8_replace_invalid(text)));
}

void Dialogue::answer(std::string_view thoughts, std::string_view text) {
  Json message = chat::message("assistant", text);
  if (!thoughts.empty()) message["reasoning_content"] = thoughts;
  messages_.push_back(std::move(message));
}

bool Dialogue::awaits_answer() const {
  return !messages_.empty() && messages_.back()["role"] == "user";
}

bool Dialogue::take_back(std::string_view role) {
  if (messages_.empty() || messages_.back()["role"] != role) return false;
  messages_.erase(messages_.size() - 1);
  return true;
}

void Dialogue::clear() { messages_ = system_; }

Result<Dialogue::Prompt> Dialogue::prompt() {
  auto guarded = chat::guard(messages_, tokenizer_);
  if (!guarded) return guarded.error();
  chat::Conversation conversation;
  conversation.messages = std::move(guarded->messages);
  conversation.variables = variables_;
  const auto rendered = template_.render(conversation);
  if (!rendered) return rendered.error().at("chat template");
  if (rendered->fallback && !warned_) {
    warned_ = true;
    warn("%s: ChatML is used instead", printable(rendered->fallback->message(), 400).c_str());
  }
  const EncodeOptions encoding = {
      .add_special = false, .parse_special = true, .guard = guarded->mark};
  auto tokens = tokenizer_.encode(rendered->text, encoding);
  if (!tokens) return tokens.error();

  // What the template puts before the answer may be gone once it is given: a thought that was
  // begun.
  conversation.add_generation_prompt = false;
  const auto messages = template_.render(conversation);
  const std::size_t same = messages ? common_beginning(rendered->text, messages->text) : 0;
  const auto rest = tokenizer_.encode(std::string_view(rendered->text).substr(same), encoding);
  const std::size_t begun = rest ? std::min(rest->size(), tokens->size()) : tokens->size();
  const std::size_t lasting = tokens->size() - begun;
  return Prompt{*std::move(tokens), ends_in_open_thought(rendered->text), lasting};
}

std::string Dialogue::to_json() const { return Json{{"messages", messages_}}.dump(2) + "\n"; }

Result<void> Dialogue::load_json(std::string_view json) {
  auto messages = parse_messages(json);
  if (!messages) return messages.error();
  messages_ = *std::move(messages);
  return {};
}

bool is_dialogue(std::string_view json) {
  if (!parse_messages(json)) return false;
  const Json parsed = Json::parse(json);
  return parsed.is_object() && parsed.size() == 1;
}

}  // namespace tsq::tool
