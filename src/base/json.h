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
  std::size_t values = 9u << 18;         // keys count too; 12 bytes each
  std::size_t token_bytes = 4u << 20;    // of a string, a number, or white space between two
  std::size_t copied_bytes = 16u << 20;  // of all strings that are spelled with escapes
};

#pragma pack(push, 4)  // 12 bytes: there may be millions
struct JsonNode {
  static constexpr std::uint32_t kMaxEnd = (1u << 28) - 1;
  std::uint32_t kind : 3;
  std::uint32_t copied : 1;  // a string: it lies in the document's own text
  std::uint32_t end : 28;    // index behind the last node of this value
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
#pragma pack(pop)

// One value, as a view: valid as long as its document, wherever that is moved, and the text.
class Json {
 public:
  struct Child;
  class Iterator;

  JsonKind kind() const { return static_cast<JsonKind>(node().kind); }
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
  friend class JsonBuilder;
  Json(const JsonNode* nodes, const char* source, const char* copies, std::uint32_t index)
      : nodes_(nodes), source_(source), copies_(copies), index_(index) {}
  const JsonNode& node() const { return nodes_[index_]; }
  Json at(std::uint32_t index) const { return {nodes_, source_, copies_, index}; }
  std::string_view string() const {
    return {(node().copied ? copies_ : source_) + node().text.offset, node().text.length};
  }

  const JsonNode* nodes_;
  const char *source_, *copies_;
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
  // independent of the text, memory is 12 bytes a value and the strings with escapes; all others
  // are views of the text, which must outlive the document.
  static Result<JsonDocument> parse(std::string_view text, const JsonLimits& limits = {});

  Json root() const { return {nodes_.data(), source_, copies_.data(), 0}; }

 private:
  friend class JsonBuilder;
  std::vector<JsonNode> nodes_;  // every value before its children; a key before its value
  const char* source_ = nullptr;
  std::vector<char> copies_;  // of strings with escapes
};

// "an object", "a string": of messages.
const char* json_kind_name(JsonKind kind);
// A value made fit for a message: 'text', 12, null, "an array".
std::string json_text(const Json& value);

}  // namespace tsq
