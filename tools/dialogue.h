// A conversation with a model: messages in, the tokens of a prompt out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/chat_template.h"
#include "tsq/model.h"

namespace tsq::tool {

struct DialogueOptions {
  std::string system;                        // empty: none, or the template's own
  std::optional<bool> think;                 // absent: as the template has it
  std::optional<std::string> template_text;  // instead of the model's
};

class Dialogue {
 public:
  // The model is borrowed and has a tokenizer.
  Dialogue(const Model& model, const DialogueOptions& options);

  void say(std::string_view text);
  void answer(std::string_view thoughts, std::string_view text);
  // Whether the last message is the user's.
  bool awaits_answer() const;
  // The last message, if it is by "user" or "assistant", is forgotten. False where it is not.
  bool take_back(std::string_view role);
  // All is forgotten but the system's message.
  void clear();
  // The messages, to come back to.
  const chat::Json& messages() const { return messages_; }
  void restore(chat::Json messages) { messages_ = std::move(messages); }

  struct Prompt {
    std::vector<Token> tokens;
    bool in_thought;      // the template has begun a thought
    std::size_t lasting;  // tokens before the answer's beginning, which later prompts share
  };
  // The prompt for the next answer. Warns, once, where the template cannot be used. Errors: the
  // template refuses the conversation.
  Result<Prompt> prompt();

  // {"messages": [{"role": ..., "content": ...}]}, as the APIs of chat servers have it.
  std::string to_json() const;
  // Replaces the messages, the system's too. After an error nothing has changed.
  Result<void> load_json(std::string_view json);

 private:
  const Tokenizer& tokenizer_;
  chat::ChatTemplate template_;
  chat::Json system_;  // messages that clear() keeps
  chat::Json messages_;
  chat::Json variables_ = chat::Json::object();
  bool warned_ = false;
};

// Whether the text is no more than what to_json() gives: such a file may be replaced by another
// one.
bool is_dialogue(std::string_view json);

}  // namespace tsq::tool
