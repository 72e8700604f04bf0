#include "chat/chat_template.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"

namespace tsq::chat {
namespace {

Value convert(const Json& json, int depth) {
  if (depth > kMaxValueDepth) {
    fail(stringf("JSON nested more than %d levels deep, expected fewer", kMaxValueDepth));
  }
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        fail(stringf("integer %" PRIu64 ", expected one below 2^63", number));
      }
      return static_cast<std::int64_t>(number);
    }
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (!utf8_is_valid(text)) fail(stringf("text '%s', expected UTF-8", printable(text).c_str()));
      return text;
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json& item : json) items.push_back(convert(item, depth + 1));
      return make_sequence(SequenceKind::list, std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, value] : json.items()) {
        entries.emplace_back(convert(key, depth + 1), convert(value, depth + 1));
      }
      return make_dict(std::move(entries));
    }
    default:
      return nullptr;
  }
}

// A message as templates see it: what is null is absent, and reasoning goes by the names that they
// read, whichever of them the caller used.
Value message_value(const Json& message) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null()) entries.emplace_back(convert(key, 2), convert(value, 2));
  }
  const auto find = [&](std::string_view name) -> Value* {
    for (auto& [key, value] : entries) {
      if (*key.if_string() == name) return &value;
    }
    return nullptr;
  };
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* found = find(name);
    if (found == nullptr) continue;
    const Value reasoning = *found;
    if (find("thinking") == nullptr) entries.insert(entries.begin(), {"thinking", reasoning});
    if (Value* old = find("reasoning_content")) {
      *old = reasoning;
    } else {
      entries.emplace_back("reasoning_content", reasoning);
    }
    break;
  }
  return make_dict(std::move(entries));
}

Value context_of(const Conversation& c, const std::string& bos, const std::string& eos) {
  std::vector<Value> messages;
  for (const Json& message : c.messages) messages.push_back(message_value(message));
  std::vector<std::pair<Value, Value>> entries = {
      {"messages", make_sequence(SequenceKind::list, std::move(messages))},
      {"tools", convert(c.tools, 1)},
      {"documents", nullptr},
      {"add_generation_prompt", c.add_generation_prompt}};
  const auto add = [&](const std::string& name, Value value) {
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
      return *entry.first.if_string() == name;
    });
    if (known == entries.end()) {
      entries.emplace_back(Value(name), std::move(value));
    } else {
      known->second = std::move(value);
    }
  };
  if (!bos.empty()) add("bos_token", bos);
  if (!eos.empty()) add("eos_token", eos);
  for (const auto& [name, value] : c.variables.items()) add(name, convert(value, 1));
  return make_dict(std::move(entries));
}

Result<void> check(const Conversation& c) {
  const auto bad = [](const std::string& what) { return Error(ErrorCode::invalid_argument, what); };
  if (!c.messages.is_array()) return bad("messages: not a list, expected a list of objects");
  for (std::size_t i = 0; i < c.messages.size(); ++i) {
    const Json& m = c.messages[i];
    if (!m.is_object()) return bad(stringf("message %zu: not an object, expected one", i));
    const auto role = m.find("role");
    if (role == m.end() || !role->is_string()) {
      return bad(stringf("message %zu: no role, expected a string", i));
    }
  }
  if (!c.tools.is_null() && !c.tools.is_array()) return bad("tools: not a list, expected one");
  if (!c.variables.is_object()) return bad("variables: not an object, expected one");
  return {};
}

// The text of a content, be it a string or a list of parts.
std::string text_of(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return "";
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  if (content->is_array()) {
    for (const Json& part : *content) {
      if (part.is_object() && part.contains("text") && part["text"].is_string()) {
        text += part["text"].get<std::string>();
      }
    }
  }
  return text;
}

std::string chatml(const Conversation& c) {
  std::string text;
  for (const Json& m : c.messages) {
    text += "<|im_start|>" + m["role"].get<std::string>() + "\n" + text_of(m) + "<|im_end|>\n";
  }
  if (c.add_generation_prompt) text += "<|im_start|>assistant\n";
  return text;
}

}  // namespace

Json message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

Result<Value> from_json(const Json& json) {
  try {
    return convert(json, 0);
  } catch (const Failure& failure) {
    return Error(ErrorCode::invalid_argument, failure.message);
  }
}

ChatTemplate::ChatTemplate(std::optional<std::string_view> source, std::string bos_token,
                           std::string eos_token)
    : template_(source ? Template::parse(*source)
                       : errorf(ErrorCode::not_found, "the file holds no chat template")),
      bos_token_(std::move(bos_token)),
      eos_token_(std::move(eos_token)) {}

Result<Prompt> ChatTemplate::render(const Conversation& conversation,
                                    const RenderOptions& options) const {
  if (const auto checked = check(conversation); !checked) return checked.error();
  Value context;
  try {
    context = context_of(conversation, bos_token_, eos_token_);
  } catch (const Failure& failure) {
    return Error(ErrorCode::invalid_argument, failure.message);
  }
  if (!template_) return Prompt{chatml(conversation), template_.error()};
  auto text = template_->render(context, options);
  if (text) return Prompt{*std::move(text), std::nullopt};
  if (text.error().code() == ErrorCode::invalid_argument) return text.error();
  return Prompt{chatml(conversation), text.error()};
}

}  // namespace tsq::chat
