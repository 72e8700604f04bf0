#include "base/json.h"

#include <algorithm>
#include <cinttypes>
#include <nlohmann/json.hpp>

#include "base/errorf.h"

namespace tsq {
namespace {

// nlohmann's lexer holds the token that it reads, and the white space before it, in memory.
Result<void> check_tokens(std::string_view text, std::size_t limit) {
  bool in_string = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i - start > limit) {
      return errorf(ErrorCode::unsupported,
                    "JSON has a string, number or gap of more than %zu bytes at byte %zu", limit,
                    start);
    }
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
      start = i + 1;
    } else if (!in_string && std::string_view("{}[]:,").find(c) != std::string_view::npos) {
      start = i + 1;
    }
  }
  return {};
}

}  // namespace

// Receives nlohmann's events, whose parser keeps its stack on the heap, one bit a level.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(JsonDocument& document, const JsonLimits& limits, std::string_view source)
      : document_(document),
        source_(source),
        limits_(limits),
        max_values_(std::min<std::size_t>(limits.values, JsonNode::kMaxEnd)) {
    // Room that is never used costs no memory; growing would copy.
    document_.source_ = source.data();
    document_.nodes_.reserve(std::min(max_values_, source.size() / 2 + 1));
    document_.copies_.reserve(std::min(limits.copied_bytes, source.size()));
  }

  bool null() override { return add(JsonKind::null) != nullptr; }
  bool boolean(bool value) override {
    JsonNode* const node = add(JsonKind::boolean);
    if (node != nullptr) node->boolean = value;
    return node != nullptr;
  }
  bool number_integer(std::int64_t value) override {
    JsonNode* const node = add(JsonKind::negative);
    if (node != nullptr) node->negative = value;
    return node != nullptr;
  }
  bool number_unsigned(std::uint64_t value) override {
    JsonNode* const node = add(JsonKind::natural);
    if (node != nullptr) node->natural = value;
    return node != nullptr;
  }
  bool number_float(double value, const std::string&) override {
    JsonNode* const node = add(JsonKind::real);
    if (node != nullptr) node->real = value;
    return node != nullptr;
  }
  bool string(std::string& value) override { return add_text(value); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // not in text
  bool start_object(std::size_t) override { return open(JsonKind::object); }
  bool start_array(std::size_t) override { return open(JsonKind::array); }
  bool key(std::string& value) override {
    is_key_ = true;
    return add_text(value);
  }
  bool end_object() override { return check_keys(open_.back()) && close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    const std::size_t id = what.find("] ");
    if (id != std::string_view::npos) what.remove_prefix(id + 2);
    error_ = errorf(ErrorCode::damaged, "not JSON: %s", printable(what, 240).c_str());
    return false;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  JsonNode* add(JsonKind kind) {
    auto& nodes = document_.nodes_;
    if (nodes.size() >= max_values_) {
      error_ = errorf(ErrorCode::unsupported, "JSON has more than %zu values", max_values_);
      return nullptr;
    }
    if (!open_.empty() && !is_key_) ++nodes[open_.back()].children;
    is_key_ = false;
    JsonNode node = {};
    node.kind = static_cast<std::uint32_t>(kind) & 7;
    node.end = static_cast<std::uint32_t>(nodes.size() + 1) & JsonNode::kMaxEnd;
    nodes.push_back(node);
    return &nodes.back();
  }
  bool add_text(const std::string& value) {
    JsonNode* const node = add(JsonKind::string);
    if (node == nullptr) return false;
    const auto length = static_cast<std::uint32_t>(value.size());
    if (const auto plain = next_plain_string()) {
      node->text = {*plain, length};
      return true;
    }
    auto& copies = document_.copies_;
    if (value.size() > limits_.copied_bytes - copies.size()) {
      error_ = errorf(ErrorCode::unsupported,
                      "JSON has more than %zu bytes of strings with escapes", limits_.copied_bytes);
      return false;
    }
    node->copied = 1;
    node->text = {static_cast<std::uint32_t>(copies.size()), length};
    copies.insert(copies.end(), value.begin(), value.end());
    return true;
  }
  // Steps over the next string of the source, which is the one that was just read. Where it starts;
  // nothing where it has escapes.
  std::optional<std::uint32_t> next_plain_string() {
    const std::size_t start = source_.find('"', at_) + 1;
    bool plain = true;
    for (at_ = start; source_[at_] != '"'; ++at_) {
      if (source_[at_] != '\\') continue;
      plain = false;
      ++at_;
    }
    ++at_;
    return plain ? std::optional(static_cast<std::uint32_t>(start)) : std::nullopt;
  }
  bool open(JsonKind kind) {
    if (open_.size() >= limits_.depth) {
      error_ = errorf(ErrorCode::unsupported, "JSON is nested deeper than %zu levels at value %zu",
                      limits_.depth, document_.nodes_.size());
      return false;
    }
    JsonNode* const node = add(kind);
    if (node == nullptr) return false;
    node->children = 0;
    open_.push_back(static_cast<std::uint32_t>(document_.nodes_.size() - 1));
    return true;
  }
  bool close() {
    document_.nodes_[open_.back()].end =
        static_cast<std::uint32_t>(document_.nodes_.size()) & JsonNode::kMaxEnd;
    open_.pop_back();
    return true;
  }

  bool check_keys(std::uint32_t object) {
    const auto& nodes = document_.nodes_;
    const Json root = document_.root();
    const auto text_of = [&](std::uint32_t key) { return root.at(key).string(); };
    keys_.clear();
    for (std::uint32_t at = object + 1; at < nodes.size(); at = nodes[at + 1].end)
      keys_.push_back(at);
    std::ranges::sort(keys_, {}, text_of);
    const auto twice = std::ranges::adjacent_find(keys_, {}, text_of);
    if (twice == keys_.end()) return true;
    error_ = errorf(ErrorCode::damaged, "JSON has the key '%s' twice in one object, expected once",
                    printable(text_of(*twice)).c_str());
    return false;
  }

  JsonDocument& document_;
  std::string_view source_;
  std::size_t at_ = 0;  // behind the last string
  const JsonLimits& limits_;
  std::size_t max_values_;
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> keys_;  // nodes
  bool is_key_ = false;              // the next node
  std::optional<Error> error_;
};

Result<JsonDocument> JsonDocument::parse(std::string_view text, const JsonLimits& limits) {
  if (text.size() >= UINT32_MAX) {
    return errorf(ErrorCode::unsupported, "JSON of %zu bytes, expected less than 4 GiB",
                  text.size());
  }
  if (const auto usual = check_tokens(text, limits.token_bytes); !usual) return usual.error();
  JsonDocument document;
  JsonBuilder builder(document, limits, text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return builder.error() ? *builder.error() : Error(ErrorCode::damaged, "not JSON");
  }
  return document;
}

std::optional<bool> Json::as_bool() const {
  if (kind() != JsonKind::boolean) return std::nullopt;
  return node().boolean;
}

std::optional<std::uint64_t> Json::as_u64() const {
  if (kind() != JsonKind::natural) return std::nullopt;
  const std::uint64_t natural = node().natural;  // a copy: nodes are packed
  return natural;
}

std::optional<double> Json::as_f64() const {
  switch (kind()) {
    case JsonKind::natural:
      return static_cast<double>(node().natural);
    case JsonKind::negative:
      return static_cast<double>(node().negative);
    case JsonKind::real:
      return double{node().real};
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> Json::as_string() const {
  if (kind() != JsonKind::string) return std::nullopt;
  return string();
}

std::size_t Json::size() const {
  const bool has_children = kind() == JsonKind::array || kind() == JsonKind::object;
  return has_children ? static_cast<std::size_t>(node().children) : 0;
}

Json::Iterator Json::begin() const { return {at(index_ + 1), kind() == JsonKind::object}; }
Json::Iterator Json::end() const { return {at(node().end), kind() == JsonKind::object}; }

std::optional<Json> Json::find(std::string_view key) const {
  if (kind() != JsonKind::object) return std::nullopt;
  for (const auto& [name, value] : *this) {
    if (name == key) return value;
  }
  return std::nullopt;
}

Json::Child Json::Iterator::operator*() const {
  if (!in_object_) return {{}, at_};
  return {at_.string(), at_.at(at_.index_ + 1)};
}

Json::Iterator& Json::Iterator::operator++() {
  at_.index_ = at_.nodes_[at_.index_ + (in_object_ ? 1 : 0)].end;
  return *this;
}

const char* json_kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return "a boolean";
    case JsonKind::natural:
    case JsonKind::negative:
    case JsonKind::real:
      return "a number";
    case JsonKind::string:
      return "a string";
    case JsonKind::array:
      return "an array";
    case JsonKind::object:
      break;
  }
  return "an object";
}

std::string json_text(const Json& value) {
  if (const auto flag = value.as_bool()) return *flag ? "true" : "false";
  if (const auto number = value.as_u64()) return stringf("%" PRIu64, *number);
  if (const auto number = value.as_f64()) return stringf("%.17g", *number);
  if (const auto text = value.as_string()) return "'" + printable(*text) + "'";
  return json_kind_name(value.kind());
}

}  // namespace tsq
