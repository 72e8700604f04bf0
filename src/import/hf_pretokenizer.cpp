#include "import/hf_pretokenizer.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/errorf.h"

namespace tsq::importer {
namespace {

constexpr std::string_view kMark = "\u2581";

// The split patterns as they stand in the tokenizer.json of Qwen2, Llama 3, Qwen3.5 and DeepSeek
// V3.
constexpr std::string_view kQwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kLlama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kQwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kDeepseekV3[] = {
    R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// GPT-2's, where it is spelled out.
constexpr std::string_view kGpt2[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};

struct Pattern {
  const char* pre;
  std::span<const std::string_view> splits;
};
constexpr Pattern kPatterns[] = {{"qwen2", kQwen2},
                                 {"llama-bpe", kLlama3},
                                 {"qwen35", kQwen35},
                                 {"deepseek-v3", kDeepseekV3},
                                 {"gpt-2", kGpt2}};

// One spelling of what can be spelled in several: a line break itself, a quote after a backslash.
std::string plain_pattern(std::string_view pattern) {
  std::string plain;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\r' || c == '\n') {
      plain += c == '\r' ? "\\r" : "\\n";
    } else if (c == '\\' && i + 1 < pattern.size()) {
      if (pattern[i + 1] != '"') plain += c;
      plain += pattern[++i];
    } else {
      plain += c;
    }
  }
  return plain;
}

std::string_view text_of(const Json& object, const char* key) {
  const auto value = object.find(key);
  return value ? value->as_string().value_or("") : "";
}

bool flag_of(const Json& object, const char* key, bool absent) {
  const auto value = object.find(key);
  return value ? value->as_bool().value_or(absent) : absent;
}

// The steps of a normalizer or pre-tokenizer: those of a Sequence, or the one that it is.
std::vector<Json> steps_of(const Json& root, const char* key, const char* list) {
  std::vector<Json> steps;
  const auto value = root.find(key);
  if (!value || value->kind() == JsonKind::null) return steps;
  const auto inner = value->find(list);
  if (text_of(*value, "type") != "Sequence" || !inner) return {*value};
  for (const auto& [name, step] : *inner) steps.push_back(step);
  return steps;
}

std::string names_of(const std::vector<Json>& steps) {
  std::string names;
  for (const Json& step : steps) {
    if (!names.empty()) names += ", ";
    names += printable(text_of(step, "type"));
  }
  return names;
}

bool is_byte_level(const Json& step, bool use_regex) {
  return text_of(step, "type") == "ByteLevel" && !flag_of(step, "add_prefix_space", true) &&
         flag_of(step, "use_regex", true) == use_regex;
}

// The pattern of a step that cuts out what it matches.
std::optional<std::string_view> split_pattern(const Json& step) {
  const auto pattern = step.find("pattern");
  if (text_of(step, "type") != "Split" || text_of(step, "behavior") != "Isolated" ||
      flag_of(step, "invert", true) || !pattern) {
    return std::nullopt;
  }
  const auto regex = pattern->find("Regex");
  return regex ? regex->as_string() : std::nullopt;
}

// The value of tokenizer.ggml.pre; empty: none.
std::string byte_level_pre(const std::vector<Json>& steps) {
  if (steps.size() == 1 && is_byte_level(steps[0], true)) return "gpt-2";
  if (steps.size() == 2 && text_of(steps[0], "type") == "Digits" &&
      flag_of(steps[0], "individual_digits", false) && is_byte_level(steps[1], true)) {
    return "smollm";
  }
  if (steps.empty() || !is_byte_level(steps.back(), false)) return {};
  std::vector<std::string> splits;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const auto pattern = split_pattern(steps[i]);
    if (!pattern) return {};
    splits.push_back(plain_pattern(*pattern));
  }
  for (const Pattern& pattern : kPatterns) {
    if (std::ranges::equal(pattern.splits, splits)) return pattern.pre;
  }
  return {};
}

bool replaces_spaces(const Json& step) {
  const auto pattern = step.find("pattern");
  return text_of(step, "type") == "Replace" && pattern && text_of(*pattern, "String") == " " &&
         text_of(step, "content") == kMark;
}

// Llama 2's ways to write spaces; nothing where it is another.
std::optional<bool> sentencepiece_prefix(const std::vector<Json>& normalizers,
                                         const std::vector<Json>& splits) {
  if (splits.empty()) {
    if (normalizers.size() == 1 && replaces_spaces(normalizers[0])) return false;
    if (normalizers.size() == 2 && text_of(normalizers[0], "type") == "Prepend" &&
        text_of(normalizers[0], "prepend") == kMark && replaces_spaces(normalizers[1])) {
      return true;
    }
    return std::nullopt;
  }
  if (!normalizers.empty() || splits.size() != 1) return std::nullopt;
  const Json& step = splits[0];
  if (text_of(step, "type") != "Metaspace" || text_of(step, "replacement") != kMark ||
      flag_of(step, "split", true)) {
    return std::nullopt;
  }
  // "always" puts no second space before a text that starts with one, "first" none after a special
  // token: tsq has neither.
  if (text_of(step, "prepend_scheme") != "never") return std::nullopt;
  return false;
}

}  // namespace

HfTextRules read_text_rules(const Json& root) {
  const auto normalizers = steps_of(root, "normalizer", "normalizers");
  const auto splits = steps_of(root, "pre_tokenizer", "pretokenizers");
  HfTextRules rules;
  if (const auto prefix = sentencepiece_prefix(normalizers, splits)) {
    rules.sentencepiece = true;
    rules.space_prefix = *prefix;
    return rules;
  }
  rules.pre = byte_level_pre(splits);
  rules.nfc = normalizers.size() == 1 && text_of(normalizers[0], "type") == "NFC";
  if (rules.pre.empty()) {
    rules.unsupported = "its pre-tokenizer (" + names_of(splits) + ") is none of those tsq has";
  } else if (!normalizers.empty() && !rules.nfc) {
    rules.unsupported = "its normalizer (" + names_of(normalizers) + ") is not supported, NFC is";
  }
  return rules;
}

}  // namespace tsq::importer
