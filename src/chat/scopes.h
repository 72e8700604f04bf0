// What the interpreter enters and leaves.
#pragma once

#include <memory>
#include <utility>

#include "chat/interpreter.h"

namespace tsq::chat {

// A scope within outer. It ends with this object, unless a macro holds it.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter& interpreter, Scope* outer)
      : interpreter_(interpreter),
        scope_(std::make_unique<Scope>(Scope{outer, {}, false})),
        before_(std::exchange(interpreter.scope_, scope_.get())) {}
  ~NewScope() {
    interpreter_.scope_ = before_;
    if (scope_->captured) interpreter_.scopes_.push_back(std::move(scope_));
  }
  NewScope(const NewScope&) = delete;
  NewScope& operator=(const NewScope&) = delete;

 private:
  Interpreter& interpreter_;
  std::unique_ptr<Scope> scope_;
  Scope* before_;
};

// Output goes to text.
class Interpreter::Capture {
 public:
  Capture(Interpreter& interpreter, std::string* text)
      : interpreter_(interpreter), before_(std::exchange(interpreter.out_, text)) {}
  ~Capture() { interpreter_.out_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Interpreter& interpreter_;
  std::string* before_;
};

}  // namespace tsq::chat
