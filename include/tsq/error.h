// Errors as values: every call of libtsq that can fail returns a Result.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace tsq {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  // an option or a value passed by the caller cannot be used
  not_found,         // a file, a tensor or a key that was asked for does not exist
  io,                // the operating system refused: permission, full disk, broken pipe
  damaged,           // the file contradicts itself, a digest or a bound
  unsupported,       // the file is sound, but holds something this build cannot run
  out_of_memory,     // an allocation failed; nothing is left half-made
  out_of_context,    // the tokens do not fit the session's context
  cancelled,         // a callback or a signal asked to stop
  numeric,           // a value became infinite or not a number
};

// What went wrong, in one line: where, what was found, what would be right.
class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with "where: " before its message.
  Error at(const std::string& where) const { return {code_, where + ": " + message_}; }

 private:
  ErrorCode code_;
  std::string message_;
};

// A value or an Error. Access to the absent one is a caller's mistake (assert).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  T& value() {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace tsq
