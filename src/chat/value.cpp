#include "chat/value.h"

#include <algorithm>

#include "chat/budget.h"
#include "chat/interpreter.h"

namespace tsq::chat {
namespace {

int checked_depth(int depth) {
  if (depth > kMaxValueDepth) {
    fail(stringf("lists and dicts nested more than %d levels deep, expected fewer", kMaxValueDepth),
         ErrorCode::unsupported);
  }
  return depth;
}

}  // namespace

Value Value::undefined(std::string why) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

std::string Value::why() const {
  const auto* undefined = std::get_if<Undefined>(&data_);
  return undefined && undefined->why ? *undefined->why : "a value is undefined";
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (const bool* flag = if_bool()) return *flag;
  if (const auto* number = if_exact_int()) return *number != 0;
  if (const double* number = if_real()) return *number != 0;
  if (const std::string* text = if_string()) return !text->empty();
  if (const Dict* dict = if_dict()) return !dict->entries.empty();
  if (const Sequence* s = if_sequence())
    return s->kind == SequenceKind::generator || !s->items.empty();
  return true;
}

int Value::depth() const {
  if (const Dict* dict = if_dict()) return dict->depth;
  if (const Sequence* sequence = if_sequence()) return sequence->depth;
  if (const Bound* bound = if_bound()) return bound->self.depth() + 1;
  if (const Loop* loop = if_loop()) return loop->items->depth + 1;
  return 0;
}

const char* Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (if_bool()) return "bool";
  if (if_exact_int()) return "int";
  if (if_real()) return "float";
  if (if_string()) return "str";
  if (if_dict()) return "dict";
  if (const Sequence* sequence = if_sequence()) return name_of(sequence->kind);
  if (if_namespace()) return "Namespace";
  if (if_macro()) return "Macro";
  if (if_loop()) return "LoopContext";
  return "function";
}

const char* Value::name_of(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::list:
      return "list";
    case SequenceKind::tuple:
      return "tuple";
    case SequenceKind::range:
      return "range";
    case SequenceKind::generator:
      return "generator";
    case SequenceKind::dict_keys:
      return "dict_keys";
    case SequenceKind::dict_values:
      return "dict_values";
    case SequenceKind::dict_items:
      return "dict_items";
  }
  return "";
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    const std::string* text = name.if_string();
    if (text && *text == key) return &value;
  }
  return nullptr;
}

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

Value make_sequence(SequenceKind kind, std::vector<Value> items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return std::make_shared<const Sequence>(
      Sequence{kind, std::move(items), checked_depth(depth + 1)});
}

Value make_dict(std::vector<std::pair<Value, Value>> entries) {
  int depth = 0;
  for (const auto& [key, value] : entries) depth = std::max({depth, key.depth(), value.depth()});
  return std::make_shared<const Dict>(Dict{std::move(entries), checked_depth(depth + 1)});
}

}  // namespace tsq::chat
