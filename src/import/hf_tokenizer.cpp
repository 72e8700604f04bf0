#include "import/hf_tokenizer.h"

#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <deque>

#include "base/errorf.h"
#include "format/tokenizer_section.h"
#include "import/hf_merges.h"
#include "import/hf_pretokenizer.h"
#include "import/merge_scores.h"

namespace tsq::importer {
namespace {

using format::TokenType;

constexpr std::size_t kMaxTemplateBytes = 1u << 20;  // those of models have some thousands
// In GPT-2's alphabet a byte takes up to two.
constexpr std::uint64_t kMaxTokenBytes = 2 * std::uint64_t{format::kMaxTextBytes};

std::optional<Json> find(const Json& object, const char* key) {
  const auto value = object.find(key);
  return value && value->kind() != JsonKind::null ? value : std::nullopt;
}
std::string_view text_of(const Json& object, const char* key) {
  const auto value = find(object, key);
  return value ? value->as_string().value_or("") : "";
}
bool flag_of(const Json& object, const char* key) {
  const auto value = find(object, key);
  return value && value->as_bool().value_or(false);
}

Error wrong(const std::string& what, const Json& found, const char* expected) {
  return errorf(ErrorCode::damaged, "%s is %s, expected %s", what.c_str(), json_text(found).c_str(),
                expected);
}

// Tokens in the order of their ids, every id taken.
struct Tokens {
  std::vector<std::string_view> texts;
  std::vector<std::int32_t> types;
  std::vector<bool> taken;
  std::deque<std::string> made;  // texts that stand in no file
  bool has_user_defined = false;

  explicit Tokens(std::uint64_t n)
      : texts(n), types(n, static_cast<std::int32_t>(TokenType::normal)), taken(n) {}
  void set_type(std::size_t id, TokenType type) { types[id] = static_cast<std::int32_t>(type); }
  bool is(std::size_t id, TokenType type) const {
    return types[id] == static_cast<std::int32_t>(type);
  }
  std::optional<std::uint32_t> find(std::string_view text) const {
    const auto found = std::ranges::find(texts, text);
    if (found == texts.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - texts.begin());
  }
};

// Empty, or why there is no tokenizer.
Result<std::string> read_vocab(const Json& model, Tokens& tokens) {
  const auto vocab = find(model, "vocab");
  if (!vocab || vocab->kind() != JsonKind::object) {
    return errorf(ErrorCode::damaged, "'model.vocab' is %s, expected an object of ids",
                  vocab ? json_text(*vocab).c_str() : "missing");
  }
  for (const auto& [text, value] : *vocab) {
    const auto id = value.as_u64();
    if (!id) return wrong("the id of token '" + printable(text) + "'", value, "a whole number");
    if (*id >= tokens.texts.size()) {
      return stringf("token '%s' has the id %" PRIu64 ", the embedding has %zu rows",
                     printable(text).c_str(), *id, tokens.texts.size());
    }
    const auto at = static_cast<std::size_t>(*id);
    if (tokens.taken[at]) {
      return errorf(ErrorCode::damaged, "tokens '%s' and '%s' have the same id, %" PRIu64,
                    printable(tokens.texts[at]).c_str(), printable(text).c_str(), *id);
    }
    tokens.taken[at] = true;
    tokens.texts[at] = text;
  }
  return std::string();
}

Result<std::string> read_added_tokens(const Json& root, Tokens& tokens) {
  const auto added = find(root, "added_tokens");
  if (!added) return std::string();
  for (const auto& [key, token] : *added) {
    const auto id = find(token, "id");
    const auto content = find(token, "content");
    if (!id || !id->as_u64() || !content || !content->as_string()) {
      return wrong("an entry of 'added_tokens'", token, "an object with id and content");
    }
    const std::string_view text = *content->as_string();
    if (*id->as_u64() >= tokens.texts.size()) {
      return stringf("token '%s' has the id %" PRIu64 ", the embedding has %zu rows",
                     printable(text).c_str(), *id->as_u64(), tokens.texts.size());
    }
    const auto at = static_cast<std::size_t>(*id->as_u64());
    if (tokens.taken[at] && tokens.texts[at] != text) {
      return errorf(ErrorCode::damaged, "token %zu is '%s' in the vocabulary and '%s' where added",
                    at, printable(tokens.texts[at]).c_str(), printable(text).c_str());
    }
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      if (!flag_of(token, flag)) continue;
      return stringf("token '%s' has the flag %s, which is not supported", printable(text).c_str(),
                     flag);
    }
    tokens.taken[at] = true;
    tokens.texts[at] = text;
    const bool control = flag_of(token, "special");
    tokens.set_type(at, control ? TokenType::control : TokenType::user_defined);
    tokens.has_user_defined |= !control;
  }
  return std::string();
}

// Rows of the embedding that no token has, as llama.cpp's converter names them.
void fill_up(Tokens& tokens) {
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.taken[id]) continue;
    tokens.texts[id] = tokens.made.emplace_back(stringf("[PAD%zu]", id));
    tokens.set_type(id, TokenType::unused);
  }
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' &&
         std::isxdigit(static_cast<unsigned char>(text[3])) != 0 &&
         std::isxdigit(static_cast<unsigned char>(text[4])) != 0;
}

std::string add_sentencepiece(const Json& model, Tokens& tokens, const HfMerges& merges,
                              bool space_prefix, MetadataBuilder& keys) {
  if (!flag_of(model, "byte_fallback")) return "it has no byte fallback";
  if (space_prefix && tokens.has_user_defined) {
    return "it puts a space after added tokens that are not special, which is not supported";
  }
  std::vector<bool> is_piece(tokens.texts.size());
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (!tokens.is(id, TokenType::normal)) continue;
    if (is_byte_token(tokens.texts[id])) {
      tokens.set_type(id, TokenType::byte);
    } else {
      is_piece[id] = true;
    }
  }
  std::vector<float> scores;
  std::string unsupported = scores_from_merges(tokens.texts, is_piece, merges, scores);
  if (!unsupported.empty()) return unsupported;
  keys.add("tokenizer.ggml.model", "llama");
  keys.add("tokenizer.ggml.pre", "default");
  keys.add("tokenizer.ggml.add_space_prefix", space_prefix);
  keys.add_f32s("tokenizer.ggml.scores", scores);
  return {};
}

void add_byte_level(const std::string& pre, const HfMerges& merges, MetadataBuilder& keys) {
  keys.add("tokenizer.ggml.model", "gpt2");
  keys.add("tokenizer.ggml.pre", std::string_view(pre));
  keys.add_pairs("tokenizer.ggml.merges", merges);
}

// What is put before and after a text.
struct Frame {
  bool known = false;  // the file says
  std::optional<std::uint32_t> before, after;
  std::string unsupported;
};

// A template [token] text [token].
Frame read_template(const Json& step, const Tokens& tokens) {
  Frame frame;
  frame.known = true;
  bool text_seen = false;
  const auto parts = find(step, "single");
  if (!parts) frame.unsupported = "its post-processor has no template for one text";
  if (!parts) return frame;
  for (const auto& [key, part] : *parts) {
    if (find(part, "Sequence") && !text_seen) {
      text_seen = true;
      continue;
    }
    const auto special = find(part, "SpecialToken");
    const auto id = special ? tokens.find(text_of(*special, "id")) : std::nullopt;
    auto& place = text_seen ? frame.after : frame.before;
    if (!id || place) {
      frame.unsupported = "its post-processor adds more than one token before and one after a text";
      return frame;
    }
    place = id;
  }
  return frame;
}

Frame read_frame(const Json& root, const Tokens& tokens) {
  const auto processor = find(root, "post_processor");
  if (!processor) return {};
  Frame frame;
  const auto add = [&](const Json& step) {
    const std::string_view type = text_of(step, "type");
    if (type == "ByteLevel") return;  // offsets
    if (type != "TemplateProcessing" || frame.known) {
      frame.unsupported = "its post-processor (" + printable(type) + ") is not supported";
    } else {
      frame = read_template(step, tokens);
    }
  };
  const auto list = find(*processor, "processors");
  if (!list) add(*processor);
  if (!list) return frame;
  for (const auto& [key, step] : *list) {
    add(step);
    if (!frame.unsupported.empty()) break;
  }
  return frame;
}

// The id that tokenizer_config.json names by its text, else that of config.json.
Result<std::optional<std::uint32_t>> special_id(const std::optional<JsonDocument>& settings,
                                                const Json& config, const char* name,
                                                const Tokens& tokens) {
  if (settings) {
    if (const auto token = find(settings->root(), name)) {
      const auto text = token->kind() == JsonKind::object ? text_of(*token, "content")
                                                          : token->as_string().value_or("");
      const auto id = tokens.find(text);
      if (id || !text.empty()) return id;
    }
  }
  const std::string key = std::string(name) + "_id";
  auto value = find(config, key.c_str());
  if (!value) return std::optional<std::uint32_t>();
  if (value->kind() == JsonKind::array && value->size() > 0) value = (*value->begin()).value;
  const auto id = value->as_u64();
  if (!id || *id >= tokens.texts.size()) {
    return wrong("'" + key + "'", *value, "the id of a token").at("config.json");
  }
  return std::optional(static_cast<std::uint32_t>(*id));
}

// eos_token_id, a number or several.
Result<void> add_end_tokens(const Json& config, const char* file, std::size_t n_tokens,
                            std::vector<std::uint32_t>& ends) {
  const auto value = find(config, "eos_token_id");
  if (!value) return {};
  const auto add = [&](const Json& each) -> Result<void> {
    const auto id = each.as_u64();
    if (!id || *id >= n_tokens) {
      return wrong("'eos_token_id'", each, "ids of tokens").at(file);
    }
    ends.push_back(static_cast<std::uint32_t>(*id));
    return {};
  };
  if (value->kind() != JsonKind::array) return add(*value);
  for (const auto& [key, id] : *value) {
    if (const auto added = add(id); !added) return added;
  }
  return {};
}

std::optional<std::string_view> find_chat_template(const HfTokenizerFiles& files,
                                                   const std::optional<JsonDocument>& settings) {
  if (files.chat_template) return files.chat_template;
  const auto given = settings ? find(settings->root(), "chat_template") : std::nullopt;
  if (!given) return std::nullopt;
  if (const auto text = given->as_string()) return text;
  for (const auto& [key, named] : *given) {
    if (text_of(named, "name") == "default") return text_of(named, "template");
  }
  return std::nullopt;
}

Result<void> add_chat_template(const HfTokenizerFiles& files,
                               const std::optional<JsonDocument>& settings, MetadataBuilder& keys) {
  const auto text = find_chat_template(files, settings);
  if (!text) return {};
  if (text->size() > kMaxTemplateBytes) {
    return errorf(ErrorCode::unsupported,
                  "the chat template has %zu bytes, at most %zu are supported", text->size(),
                  kMaxTemplateBytes)
        .at(files.chat_template ? "chat_template.jinja" : "tokenizer_config.json");
  }
  keys.add("tokenizer.chat_template", *text);
  return {};
}

Result<std::optional<JsonDocument>> parse_if_there(const std::optional<std::string_view>& text,
                                                   const char* file) {
  if (!text) return std::optional<JsonDocument>();
  auto document = JsonDocument::parse(*text, kSettingsLimits);
  if (!document) return document.error().at(file);
  return std::optional(std::move(*document));
}

std::string why_no_bpe(const Json& model) {
  const std::string_view type = text_of(model, "type");
  if (type != "BPE") return "its model (" + printable(type) + ") is not supported, BPE is";
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto value = find(model, key);
    if (value && value->as_string() != "") {
      return stringf("its model has %s, which is not supported", key);
    }
  }
  return {};
}

// Tokens, merges or scores; empty, or why there is no tokenizer.
Result<std::string> add_model(const Json& root, Tokens& tokens, const HfTokenizerFiles& files,
                              HfTokenizer& result, MetadataBuilder& keys) {
  const auto model = find(root, "model");
  if (!model) return errorf(ErrorCode::damaged, "'model' is missing");
  if (auto reason = why_no_bpe(*model); !reason.empty()) return reason;
  const HfTextRules rules = read_text_rules(root);
  if (!rules.unsupported.empty()) return rules.unsupported;
  for (const auto& read : {read_vocab(*model, tokens), read_added_tokens(root, tokens)}) {
    if (!read || !read->empty()) return read;
  }
  fill_up(tokens);
  std::uint64_t bytes = 0;
  for (const std::string_view text : tokens.texts) bytes += text.size();
  if (bytes > kMaxTokenBytes) {
    return errorf(ErrorCode::unsupported,
                  "tokens of %" PRIu64 " bytes of text, at most %" PRIu64 " are supported", bytes,
                  kMaxTokenBytes);
  }
  const auto merges = HfMerges::of(*model);
  if (!merges) return merges.error();
  if (rules.sentencepiece) {
    auto reason = add_sentencepiece(*model, tokens, *merges, rules.space_prefix, keys);
    if (!reason.empty()) return reason;
  } else {
    add_byte_level(rules.pre, *merges, keys);
  }
  files.release_tokenizer();
  result.nfc = rules.nfc;
  result.whole_pieces = flag_of(*model, "ignore_merges");
  keys.add_texts("tokenizer.ggml.tokens", tokens.texts);
  keys.add_i32s("tokenizer.ggml.token_type", tokens.types);
  return std::string();
}

Result<void> add_special(const Json& config, const std::optional<JsonDocument>& settings,
                         const Frame& frame, const Tokens& tokens, MetadataBuilder& keys) {
  const struct {
    const char *name, *key;
    std::optional<std::uint32_t> of_frame;
  } kIds[] = {{"bos_token", "bos", frame.before},
              {"eos_token", "eos", frame.after},
              {"unk_token", "unknown", {}},
              {"pad_token", "padding", {}}};
  for (const auto& [name, key, of_frame] : kIds) {
    auto id = special_id(settings, config, name, tokens);
    if (!id) return id.error();
    if (of_frame) *id = of_frame;
    if (*id) keys.add(stringf("tokenizer.ggml.%s_token_id", key), **id);
  }
  const bool config_bos = settings && flag_of(settings->root(), "add_bos_token");
  const bool config_eos = settings && flag_of(settings->root(), "add_eos_token");
  keys.add("tokenizer.ggml.add_bos_token", frame.known ? frame.before.has_value() : config_bos);
  keys.add("tokenizer.ggml.add_eos_token", frame.known ? frame.after.has_value() : config_eos);
  return {};
}

}  // namespace

Result<HfTokenizer> read_hf_tokenizer(const HfTokenizerFiles& files, const Json& config,
                                      std::uint64_t n_tokens, MetadataBuilder& keys) {
  HfTokenizer result;
  const auto settings = parse_if_there(files.tokenizer_config, "tokenizer_config.json");
  if (!settings) return settings.error();
  const auto generation = parse_if_there(files.generation_config, "generation_config.json");
  if (!generation) return generation.error();
  if (const auto added = add_chat_template(files, *settings, keys); !added) return added.error();
  if (!files.tokenizer) {
    result.unsupported = "there is no tokenizer.json";
    return result;
  }
  if (n_tokens > format::kMaxTokens) {
    result.unsupported = stringf("the embedding has %" PRIu64
                                 " rows, tokenizers of up to %u are "
                                 "supported",
                                 n_tokens, format::kMaxTokens);
    return result;
  }
  const auto document = JsonDocument::parse(*files.tokenizer);
  files.release_tokenizer();
  if (!document && document.error().code() == ErrorCode::unsupported) {
    result.unsupported = document.error().message();
    return result;
  }
  if (!document) return document.error().at("tokenizer.json");

  // Its keys count only if all of it can be used.
  MetadataBuilder whole = keys;
  // Each text gets a length of 8 bytes; one that stands in the file has two quotes and a comma
  // there.
  whole.reserve(2 * files.tokenizer->size() + 32 * n_tokens);
  Tokens tokens(n_tokens);
  auto reason = add_model(document->root(), tokens, files, result, whole);
  if (!reason) return reason.error().at("tokenizer.json");
  Frame frame;
  if (reason->empty()) {
    frame = read_frame(document->root(), tokens);
    *reason = frame.unsupported;
  }
  result.unsupported = std::move(*reason);
  if (!result.unsupported.empty()) return result;
  if (const auto added = add_special(config, *settings, frame, tokens, whole); !added) {
    return added.error();
  }
  if (*generation) {
    const auto added = add_end_tokens((*generation)->root(), "generation_config.json", n_tokens,
                                      result.end_tokens);
    if (!added) return added.error();
  }
  const auto added = add_end_tokens(config, "config.json", n_tokens, result.end_tokens);
  if (!added) return added.error();
  keys = std::move(whole);
  return result;
}

}  // namespace tsq::importer
