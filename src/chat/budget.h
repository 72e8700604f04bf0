// What a template may cost, and how a failure travels.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <string>
#include <utility>

#include "base/errorf.h"
#include "chat/value.h"

namespace tsq::chat {

// Thrown inside this room, where nearly every line can fail; Template turns it into an Error.
struct Failure {
  ErrorCode code;
  std::string message;
};

// damaged: Jinja would refuse it too. unsupported: a limit, or something that is not built.
[[noreturn]] inline void fail(std::string message, ErrorCode code = ErrorCode::damaged) {
  throw Failure{code, std::move(message)};
}

struct Limits {
  int depth = 500;                        // nested evaluations
  std::uint64_t output_bytes = 16 << 20;  // of a rendering
  std::uint64_t steps = 20'000'000;       // expressions, statements, items; 64 bytes are a step
  std::uint64_t value_bytes = 256 << 20;  // of all values made on the way together
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }

  void step(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ > limits_.steps) {
      fail(stringf("over %" PRIu64 " steps, expected a template that ends sooner", limits_.steps),
           ErrorCode::unsupported);
    }
  }

  void bytes(std::uint64_t n) {
    bytes_ += n;
    if (bytes_ > limits_.value_bytes) {
      fail(stringf("over %" PRIu64 " bytes of values, expected a template that makes fewer",
                   limits_.value_bytes),
           ErrorCode::unsupported);
    }
    step(n / 64);
  }

  Value string(std::string text) {
    bytes(kValueBytes + text.size());
    return Value(std::move(text));
  }
  Value list(std::vector<Value> items) { return sequence(SequenceKind::list, std::move(items)); }
  Value sequence(SequenceKind kind, std::vector<Value> items) {
    bytes(kValueBytes + items.size() * sizeof(Value));
    return make_sequence(kind, std::move(items));
  }
  Value dict(std::vector<std::pair<Value, Value>> entries) {
    bytes(kValueBytes + entries.size() * 2 * sizeof(Value));
    return make_dict(std::move(entries));
  }

  // About what a value costs beside its bytes.
  static constexpr std::uint64_t kValueBytes = 64;

 private:
  Limits limits_;
  std::uint64_t steps_ = 0, bytes_ = 0;
};

// A string that is paid for as it grows.
class Text {
 public:
  explicit Text(Budget& budget) : budget_(budget) {}

  Text& operator+=(std::string_view more) {
    budget_.bytes(more.size());
    text_ += more;
    return *this;
  }
  Text& operator+=(char more) { return *this += std::string_view(&more, 1); }
  Budget& budget() { return budget_; }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  Budget& budget_;
  std::string text_;
};

}  // namespace tsq::chat
