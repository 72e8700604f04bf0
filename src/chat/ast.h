// A template as a tree. Its depth is bounded by the parser, so that what walks it may recurse.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace tsq::chat {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;  // *list, **dict
};

enum class ExprKind {
  constant,
  name,
  list,
  tuple,
  dict,         // kids: key, value, key, value
  attribute,    // kids[0].text
  subscript,    // kids[0][kids[1]]
  slice,        // kids[0][a:b:c]; absent ones are null
  call,         // kids[0](arguments)
  filter,       // kids[0] | text(arguments)
  test,         // kids[0] is text(arguments)
  conditional,  // kids[1] if kids[0] else kids[2], which may be null
  logical_not,
  logical_and,
  logical_or,
  compare,     // kids[0] operators[0] kids[1] operators[1] ...
  arithmetic,  // kids[0] text kids[1]
  negate,
  plus,
  concat,  // kids joined
};

struct Expr {
  ExprKind kind;
  int line = 0;
  int depth = 1;
  std::string text;
  Value constant;
  std::vector<ExprPtr> kids;
  std::vector<std::string> operators;
  Arguments arguments;
};

struct Target {  // of set, for and with: a name, an attribute of a namespace, or several targets
  std::string name, attribute;
  std::vector<Target> parts;
};

struct Stmt;
using StmtPtr = std::unique_ptr<const Stmt>;
using Body = std::vector<StmtPtr>;

enum class StmtKind {
  data,         // text
  output,       // expr
  branch,       // if expr: body; else: other (an elif is a branch in other)
  loop,         // for target in expr if test: body; else: other
  assign,       // set target = expr
  block_set,    // set target: body, through the filter expr if there is one
  with,         // bindings: body
  macro,        // macro
  call,         // expr is a call that gets macro as its caller
  filter_body,  // body through the filter expr
  scope,        // body, by itself: {% generation %}
  break_loop,
  continue_loop,
};

struct MacroSource {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct Stmt {
  StmtKind kind;
  int line = 0;
  std::string text;
  ExprPtr expr, test;
  Target target;
  Body body, other;
  std::vector<std::pair<Target, ExprPtr>> bindings;  // of with
  std::unique_ptr<const MacroSource> macro;
};

}  // namespace tsq::chat
