// The values of a template, as Python has them. Strings, lists and dicts are immutable and shared;
// only a namespace changes, and the interpreter owns those: no value owns itself through a cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tsq::chat {

struct Sequence;
struct Dict;
struct Namespace;
struct Macro;
struct Loop;
struct Bound;
enum class SequenceKind;

enum class Builtin { range, dict, make_namespace, raise_exception, strftime_now };

class Value {
 public:
  struct Undefined {
    std::shared_ptr<const std::string> why;  // the message of an error, should it be used
  };
  using Data = std::variant<Undefined, std::nullptr_t, bool, std::int64_t, double,
                            std::shared_ptr<const std::string>, std::shared_ptr<const Sequence>,
                            std::shared_ptr<const Dict>, Namespace*, const Macro*,
                            std::shared_ptr<Loop>, std::shared_ptr<const Bound>, Builtin>;

  Value() = default;  // undefined
  Value(std::nullptr_t none) : data_(none) {}
  Value(bool flag) : data_(flag) {}
  Value(std::int64_t number) : data_(number) {}
  Value(int number) : data_(std::int64_t{number}) {}
  Value(double number) : data_(number) {}
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Builtin function) : data_(function) {}
  Value(Namespace* space) : data_(space) {}
  Value(const Macro* macro) : data_(macro) {}
  Value(std::shared_ptr<Loop> loop) : data_(std::move(loop)) {}
  Value(std::shared_ptr<const Bound> bound) : data_(std::move(bound)) {}
  Value(std::shared_ptr<const Sequence> items) : data_(std::move(items)) {}
  Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  static Value undefined(std::string why);

  bool is_undefined() const { return data_.index() == 0; }
  bool is_none() const { return data_.index() == 1; }
  const bool* if_bool() const { return std::get_if<bool>(&data_); }
  const double* if_real() const { return std::get_if<double>(&data_); }
  const std::int64_t* if_exact_int() const { return std::get_if<std::int64_t>(&data_); }
  const std::string* if_string() const { return if_shared<const std::string>(); }
  const Sequence* if_sequence() const { return if_shared<const Sequence>(); }
  const Dict* if_dict() const { return if_shared<const Dict>(); }
  const Bound* if_bound() const { return if_shared<const Bound>(); }
  Loop* if_loop() const { return if_shared<Loop>(); }
  Namespace* if_namespace() const { return if_pointer<Namespace*>(); }
  const Macro* if_macro() const { return if_pointer<const Macro*>(); }
  const Builtin* if_builtin() const { return std::get_if<Builtin>(&data_); }
  const Data& data() const { return data_; }

  // Why an undefined value is undefined.
  std::string why() const;
  bool truthy() const;
  // Levels of lists and dicts below and with this one.
  int depth() const;
  // The name of its type in Python.
  const char* type_name() const;
  static const char* name_of(SequenceKind kind);

 private:
  template <class T>
  T* if_shared() const {
    const auto* pointer = std::get_if<std::shared_ptr<T>>(&data_);
    return pointer ? pointer->get() : nullptr;
  }
  template <class T>
  T if_pointer() const {
    const T* pointer = std::get_if<T>(&data_);
    return pointer ? *pointer : nullptr;
  }

  Data data_;
};

// What Python would have returned. All of them hold their items here; the difference shows in
// is sequence, length, indexing and repr.
enum class SequenceKind { list, tuple, range, generator, dict_keys, dict_values, dict_items };

struct Sequence {
  SequenceKind kind = SequenceKind::list;
  std::vector<Value> items;
  int depth = 1;
};

// In the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  const Value* find(std::string_view key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  Value* find(std::string_view name);
};

// A method and what it belongs to: text.strip.
struct Bound {
  Value self;
  std::string name;
};

// Nesting of lists and dicts is bounded, so that what walks them may recurse; deeper is a Failure.
constexpr int kMaxValueDepth = 100;
Value make_sequence(SequenceKind kind, std::vector<Value> items);
Value make_dict(std::vector<std::pair<Value, Value>> entries);

}  // namespace tsq::chat
