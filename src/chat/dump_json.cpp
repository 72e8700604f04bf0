// json.dumps of Python.
#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : style_(style), out_(budget) {}

  void write(const Value& value) {
    out_.budget().step();
    if (const std::string* text = value.if_string()) {
      write_string(*text);
    } else if (const Sequence* s = value.if_sequence();
               s && (s->kind == SequenceKind::list || s->kind == SequenceKind::tuple)) {
      write_list(*s);
    } else if (const Dict* dict = value.if_dict()) {
      write_dict(*dict);
    } else {
      const auto number = scalar(value);
      if (!number) {
        fail(stringf("Object of type %s is not JSON serializable", value.type_name()));
      }
      out_ += *number;
    }
  }
  std::string take() { return out_.take(); }

 private:
  static std::optional<std::string> scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* flag = value.if_bool()) return *flag ? "true" : "false";
    if (const auto* number = value.if_exact_int()) return std::to_string(*number);
    if (const double* number = value.if_real()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
      return real_repr(*number);
    }
    return std::nullopt;
  }

  void new_line() {
    if (!style_.multiline) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += style_.indent;
  }

  void write_list(const Sequence& list) {
    if (list.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.comma;
      new_line();
      write(list.items[i]);
    }
    --level_;
    new_line();
    out_ += ']';
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> entries;
    out_.budget().bytes(dict.entries.size() * sizeof entries[0]);
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sorted) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return compare(out_.budget(), a->first, b->first, "<") == -1;
      });
    }
    out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.comma;
      new_line();
      const Value& key = entries[i]->first;
      const auto text = key.if_string() ? *key.if_string() : scalar(key);
      if (!text) {
        fail(stringf("keys must be str, int, float, bool or None, not %s", key.type_name()));
      }
      write_string(*text);
      out_ += style_.colon;
      write(entries[i]->second);
    }
    --level_;
    new_line();
    out_ += '}';
  }

  void write_string(std::string_view text) {
    static constexpr std::string_view kPlain = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    out_ += '"';
    for (std::size_t n; !text.empty(); text.remove_prefix(n)) {
      n = char_bytes(text);
      const char32_t c = decode_char(text);
      if (const auto i = kPlain.find(text[0]); i != kPlain.npos) {
        out_ += '\\';
        out_ += kLetters[i];
      } else if (c < 0x20 || (style_.ascii && c >= 0x10000)) {
        if (c >= 0x10000) unit(0xd800 + ((c - 0x10000) >> 10));
        unit(c < 0x20 ? c : 0xdc00 + (c & 0x3ff));
      } else if (style_.ascii && c >= 0x7f) {
        unit(c);
      } else {
        out_ += text.substr(0, n);
      }
    }
    out_ += '"';
  }
  void unit(char32_t c) { out_ += stringf("\\u%04x", static_cast<unsigned>(c)); }

  const JsonStyle& style_;
  Text out_;
  int level_ = 0;
};

}  // namespace

std::string dump_json(Budget& budget, const Value& value, const JsonStyle& style) {
  Writer writer(budget, style);
  writer.write(value);
  return writer.take();
}

}  // namespace tsq::chat
