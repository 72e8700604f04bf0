// JSON from files of unknown origin: parsed once, checked, kept flat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tsq/error.h"

namespace tsq {

enum class JsonKind : std::uint8_t {
  null,
  boolean,
  natural,
  negative,
  real,
  string,
  array,
  object
};

struct JsonLimits {
  std::size_t depth = 64;
  std::size_t values = 5u << 19;       // keys count too; 16 bytes each
  std::size_t token_bytes = 4u << 20;  // of a string, a number, or white space between two
};

struct JsonNode {
  JsonKind kind;
  std::uint32_t end;  // index behind the last node of this value
  union {
    bool boolean;
    std::uint64_t natural;
    std::int64_t negative;
    double real;
    struct {
      std::uint32_t offset, length;
    } text;
    std::uint64_t children;
  };
};

// One value, as a view: valid as long as its document, wherever that is moved.
class Json {
 public:
  struct Child;
  class Iterator;

  JsonKind kind() const { return node().kind; }
  // Every conversion gives nothing where the type or the range does not fit.
  std::optional<bool> as_bool() const;
  std::optional<std::uint64_t> as_u64() const;
  std::optional<double> as_f64() const;  // of any number
  std::optional<std::string_view> as_string() const;

  // Elements of an array, members of an object; none of any other value.
  std::size_t size() const;
  Iterator begin() const;
  Iterator end() const;
  // The value of an object's key. Time grows with the number of members.
  std::optional<Json> find(std::string_view key) const;

 private:
  friend class JsonDocument;
  Json(const JsonNode* nodes, const char* text, std::uint32_t index)
      : nodes_(nodes), text_(text), index_(index) {}
  const JsonNode& node() const { return nodes_[index_]; }
  std::string_view string() const { return {text_ + node().text.offset, node().text.length}; }

  const JsonNode* nodes_;
  const char* text_;
  std::uint32_t index_;
};

struct Json::Child {
  std::string_view key;  // empty in an array
  Json value;
};

class Json::Iterator {
 public:
  Child operator*() const;
  Iterator& operator++();
  bool operator==(const Iterator& other) const { return at_.index_ == other.at_.index_; }

 private:
  friend class Json;
  Iterator(Json at, bool in_object) : at_(at), in_object_(in_object) {}
  Json at_;  // in an object: the key, with the value behind it
  bool in_object_;
};

class JsonDocument {
 public:
  // Errors: damaged, for text that is no JSON, not UTF-8, or has a key twice in one object;
  // unsupported, for what is beyond the limits. They name line and column, or the byte. Stack is
  // independent of the text, memory is 16 bytes a value and the text's strings.
  static Result<JsonDocument> parse(std::string_view text, const JsonLimits& limits = {});

  Json root() const { return {nodes_.data(), text_.data(), 0}; }

 private:
  friend class JsonBuilder;
  std::vector<JsonNode> nodes_;  // every value before its children; a key before its value
  std::vector<char> text_;       // of all strings
};

// "an object", "a string": of messages.
const char* json_kind_name(JsonKind kind);
// A value made fit for a message: 'text', 12, null, "an array".
std::string json_text(const Json& value);

}  // namespace tsq
