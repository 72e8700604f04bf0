// Python's arithmetic, indices and slices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "chat/functions.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

[[noreturn]] void fail_operands(const std::string& op, const Value& a, const Value& b) {
  if (a.is_undefined()) fail(a.why());
  if (b.is_undefined()) fail(b.why());
  if (op == "+" && a.if_string()) {
    fail(stringf("can only concatenate str (not \"%s\") to str", b.type_name()));
  }
  fail(stringf("unsupported operand type(s) for %s: '%s' and '%s'", op.c_str(), a.type_name(),
               b.type_name()));
}

std::optional<std::int64_t> integer_of(const Value& value) {
  if (const bool* flag = value.if_bool()) return *flag;
  if (const auto* number = value.if_exact_int()) return *number;
  return std::nullopt;
}

std::optional<double> real_of(const Value& value) {
  if (const double* number = value.if_real()) return *number;
  if (const auto number = integer_of(value)) return static_cast<double>(*number);
  return std::nullopt;
}

[[noreturn]] void fail_overflow() {
  fail("an integer of more than 64 bits, expected a smaller one", ErrorCode::unsupported);
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (; exponent > 0; --exponent) {  // at most 63 times
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
  }
  return result;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (b == -1) {
    std::int64_t result;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &result)) fail_overflow();
    return result;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

Value integer_arithmetic(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "//") {
    result = floor_divide(a, b);
  } else if (op == "%") {
    result = b == -1 ? 0 : a - floor_divide(a, b) * b;
  } else if (op == "**") {
    if (b < 0) {
      if (a == 0) fail("0.0 cannot be raised to a negative power");
      return std::pow(static_cast<double>(a), static_cast<double>(b));
    }
    result = power(a, b);
  } else {  // /
    if (b == 0) fail("division by zero");
    return static_cast<double>(a) / static_cast<double>(b);
  }
  if (overflow) fail_overflow();
  return result;
}

Value real_arithmetic(const std::string& op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") {
    if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
    const double result = std::pow(a, b);
    if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
      fail("a complex number, expected a real one", ErrorCode::unsupported);
    }
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
      fail("numerical result out of range");
    return result;
  }
  if (b == 0) fail("float division by zero");
  if (op == "/") return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (op == "%") return rest == 0 ? std::copysign(0.0, b) : rest;
  return std::floor((a - rest) / b + 0.5);
}

Value repeated(Budget& budget, const Value& value, std::int64_t n) {
  const std::uint64_t times = n > 0 ? static_cast<std::uint64_t>(n) : 0;
  const std::string* text = value.if_string();
  const std::uint64_t size =
      text ? text->size() : value.if_sequence()->items.size() * sizeof(Value);
  const bool too_many = size != 0 && times > std::numeric_limits<std::uint32_t>::max() / size;
  if (too_many) budget.bytes(std::uint64_t{1} << 40);
  budget.bytes(size * times);
  if (text != nullptr) {
    std::string result;
    if (size != 0) result.reserve(size * times);
    for (std::uint64_t i = 0; size != 0 && i < times; ++i) result += *text;
    return budget.string(std::move(result));
  }
  const Sequence& sequence = *value.if_sequence();
  std::vector<Value> items;
  for (std::uint64_t i = 0; size != 0 && i < times; ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return budget.sequence(sequence.kind, std::move(items));
}

bool is_list_or_tuple(const Value& value) {
  const Sequence* s = value.if_sequence();
  return s != nullptr && (s->kind == SequenceKind::list || s->kind == SequenceKind::tuple);
}

bool is_indexable(const Sequence& s) {
  return s.kind == SequenceKind::list || s.kind == SequenceKind::tuple ||
         s.kind == SequenceKind::range;
}

// Python's adjustment of slice bounds.
std::int64_t bound(const Value* given, std::int64_t size, std::int64_t low, std::int64_t high,
                   std::int64_t absent) {
  if (given == nullptr || given->is_none()) return absent;
  std::int64_t at = require_int(*given, "slice index");
  if (at < 0) at = at < -size ? -1 - size : at + size;
  return std::clamp(at, low, high);
}

}  // namespace

Value arithmetic(Budget& budget, const std::string& op, const Value& a, const Value& b) {
  if (op == "%" && a.if_string()) return budget.string(printf_format(budget, *a.if_string(), b));
  const auto i = integer_of(a), j = integer_of(b);
  if (i && j) return integer_arithmetic(op, *i, *j);
  const auto x = real_of(a), y = real_of(b);
  if (x && y) return real_arithmetic(op, *x, *y);
  if (op == "+") {
    if (a.if_string() && b.if_string()) {
      budget.bytes(a.if_string()->size() + b.if_string()->size());
      return budget.string(*a.if_string() + *b.if_string());
    }
    if (is_list_or_tuple(a) && is_list_or_tuple(b) &&
        a.if_sequence()->kind == b.if_sequence()->kind) {
      std::vector<Value> items = a.if_sequence()->items;
      const auto& more = b.if_sequence()->items;
      items.insert(items.end(), more.begin(), more.end());
      return budget.sequence(a.if_sequence()->kind, std::move(items));
    }
  }
  if (op == "*") {
    if ((a.if_string() || is_list_or_tuple(a)) && j) return repeated(budget, a, *j);
    if ((b.if_string() || is_list_or_tuple(b)) && i) return repeated(budget, b, *i);
  }
  fail_operands(op, a, b);
}

Value negate(const Value& value) {
  if (const auto number = integer_of(value)) return integer_arithmetic("-", 0, *number);
  if (const double* number = value.if_real()) return -*number;
  if (value.is_undefined()) fail(value.why());
  fail(stringf("bad operand type for unary -: '%s'", value.type_name()));
}

Value subscript(Budget& budget, const Value& object, const Value& key) {
  if (object.is_undefined()) fail(object.why());
  if (const Dict* dict = object.if_dict()) {
    const Sequence* sequence = key.if_sequence();
    const bool hashable = !key.if_dict() && (!sequence || sequence->kind == SequenceKind::tuple);
    if (const Value* found = hashable ? find_key(budget, *dict, key) : nullptr) return *found;
  } else if (const auto given = integer_of(key)) {
    const Sequence* sequence = object.if_sequence();
    if (object.if_string() || (sequence && is_indexable(*sequence))) {
      const std::int64_t size = length(object);
      const std::int64_t at = *given < 0 ? *given + size : *given;
      if (at >= 0 && at < size) {
        if (sequence) return sequence->items[static_cast<std::size_t>(at)];
        const std::string& text = *object.if_string();
        budget.step(text.size() / 16);
        std::string_view rest = text;
        for (std::int64_t i = 0; i < at; ++i) rest.remove_prefix(char_bytes(rest));
        return budget.string(std::string(rest.substr(0, char_bytes(rest))));
      }
    }
  }
  Text name(budget);
  append_repr(name, key);
  return Value::undefined(stringf("%s object has no element ", object.type_name()) +
                          printable(name.text()));
}

Value slice(Budget& budget, const Value& object, const Value* start, const Value* stop,
            const Value* step_value) {
  if (object.is_undefined()) fail(object.why());
  const std::string* text = object.if_string();
  const Sequence* sequence = object.if_sequence();
  if (text == nullptr && (sequence == nullptr || !is_indexable(*sequence))) {
    fail(stringf("'%s' object cannot be sliced", object.type_name()));
  }
  const std::int64_t step =
      step_value && !step_value->is_none() ? require_int(*step_value, "slice step") : 1;
  if (step == 0) fail("slice step cannot be zero");
  std::vector<std::uint32_t> offsets;
  if (text != nullptr) {
    budget.bytes(4 * text->size());
    offsets = char_offsets(*text);
  }
  const auto size = static_cast<std::int64_t>(text ? offsets.size() - 1 : sequence->items.size());
  const bool forward = step > 0;
  const std::int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  std::int64_t at = bound(start, size, low, high, forward ? low : high);
  const std::int64_t end = bound(stop, size, low, high, forward ? high : low);
  std::string part;
  std::vector<Value> items;
  while (forward ? at < end : at > end) {
    budget.step();
    if (text != nullptr) {
      part.append(*text, offsets[at], offsets[at + 1] - offsets[at]);
    } else {
      items.push_back(sequence->items[static_cast<std::size_t>(at)]);
    }
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  if (text != nullptr) return budget.string(std::move(part));
  return budget.sequence(sequence->kind, std::move(items));
}

}  // namespace tsq::chat
