// Whatever the template and the conversation, the room of chat templates answers, within its
// limits. An input is a template, then a line of "----", then a conversation as JSON: what a model
// file and a client bring.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "chat/chat_template.h"

namespace {

using namespace tsq;
using namespace tsq::chat;

constexpr std::string_view kSeparator = "\n----\n";

// Small enough for many inputs a second; what the limits do not catch is what a fuzzer should find.
RenderOptions small_limits() {
  RenderOptions options;
  options.limits = {.output_bytes = 1 << 16, .steps = 50'000, .value_bytes = 1 << 20};
  options.now = std::tm{};
  return options;
}

Json section(const Json& json, const char* name, Json absent) {
  const auto found = json.find(name);
  return found == json.end() ? absent : *found;
}

Conversation conversation_of(std::string_view text) {
  Conversation conversation;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    conversation.messages = {message("user", text)};
    return conversation;
  }
  conversation.messages = section(json, "messages", Json::array());
  conversation.tools = section(json, "tools", nullptr);
  conversation.variables = section(json, "variables", Json::object());
  return conversation;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find(kSeparator), size);
  const std::string_view source = input.substr(0, end);
  const auto rest = input.substr(std::min(end + kSeparator.size(), size));
  const ChatTemplate chat(source, "<s>", "</s>");
  const auto prompt = chat.render(conversation_of(rest), small_limits());
  const Error* error = !prompt ? &prompt.error() : prompt->fallback ? &*prompt->fallback : nullptr;
  if (error != nullptr && error->message().empty() &&
      error->code() != ErrorCode::invalid_argument) {
    std::abort();
  }
  // What goes in as UTF-8 comes out so.
  if (prompt && utf8_is_valid(input) && !utf8_is_valid(prompt->text)) std::abort();
  return 0;
}
