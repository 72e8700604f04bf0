// The chat template of a model: a conversation as the text that the model continues.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "chat/template.h"
#include "tsq/error.h"

namespace tsq::chat {

using Json = nlohmann::ordered_json;  // templates print the keys in their order

Json message(std::string_view role, std::string_view content);

struct Conversation {
  // Objects with role and content, and where there are any reasoning_content, tool_calls, name ...
  Json messages = Json::array();
  Json tools;  // an array of function schemas, null for none
  bool add_generation_prompt = true;
  // What else the template may ask for, by name: enable_thinking, date_string ...
  Json variables = Json::object();
};

struct Prompt {
  std::string text;
  // Why the template could not be used and ChatML was used instead: worth a warning.
  std::optional<Error> fallback;
};

class ChatTemplate {
 public:
  // source: the value of tokenizer.chat_template; nullopt where the file has none. The tokens as
  // text, empty where there are none.
  explicit ChatTemplate(std::optional<std::string_view> source, std::string bos_token = "",
                        std::string eos_token = "");

  // invalid_argument: the conversation is at fault. Either it is no conversation (messages is not a
  // list of objects, text is not UTF-8), or the template refuses it, with the template's words. A
  // template that fails in any other way gives way to ChatML. A template decides itself whether the
  // prompt begins with bos_token: tokenize it without adding one.
  Result<Prompt> render(const Conversation& conversation, const RenderOptions& options = {}) const;

 private:
  Result<Template> template_;
  std::string bos_token_, eos_token_;
};

// Any JSON as a value of a template; an Error where it is nested too deep or an integer does not
// fit.
Result<Value> from_json(const Json& json);

}  // namespace tsq::chat
