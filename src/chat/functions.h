// What templates call: operators, filters, tests and methods. All throw Failure.
#pragma once

#include <ctime>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/budget.h"
#include "chat/value.h"

namespace tsq::chat {

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The arguments in the order of the callee's parameters, null where one is absent.
std::vector<const Value*> bind(const std::string& callee, const Args& args,
                               std::initializer_list<const char*> parameters,
                               std::size_t required = 0);

// values.cpp: conversions and relations.
std::string to_string(Budget& budget, const Value& value);
void append_string(Text& out, const Value& value);
void append_repr(Text& out, const Value& value, int depth = 0);
bool equal(Budget& budget, const Value& a, const Value& b);
// Below, at or above 0; a Failure that names op where they have no order.
int compare(Budget& budget, const Value& a, const Value& b, const char* op);
// Whether it can be iterated, and over what.
bool is_iterable(const Value& value);
std::shared_ptr<const Sequence> iterate(Budget& budget, const Value& value);
const Value* find_key(Budget& budget, const Dict& dict, const Value& key);
bool contains(Budget& budget, const Value& container, const Value& item);
std::int64_t length(const Value& value);
// The integer that a bool or int is; what names the use.
std::int64_t require_int(const Value& value, const char* what);
const std::string& require_string(const Value& value, const char* what);

// operators.cpp
Value arithmetic(Budget& budget, const std::string& op, const Value& a, const Value& b);
Value negate(const Value& value);
// object[key]: undefined where there is nothing.
Value subscript(Budget& budget, const Value& object, const Value& key);
Value slice(Budget& budget, const Value& object, const Value* start, const Value* stop,
            const Value* step);

// The rest: a file each.
Value apply_filter(Budget& budget, const std::string& name, const Value& input, const Args& args);
bool apply_test(Budget& budget, const std::string& name, const Value& input, const Args& args);
bool has_method(const Value& self, std::string_view name);
bool is_unsafe_method(const Value& self, std::string_view name);  // those that change the object
Value call_method(Budget& budget, const Value& self, const std::string& name, const Args& args);
// format % value of Python, value a tuple or a dict or one value.
std::string printf_format(Budget& budget, const std::string& format, const Value& value);
std::string time_format(const std::string& format, const std::tm& time);

struct JsonStyle {
  bool ascii = false, sorted = false;
  bool multiline = false;
  std::string indent, comma = ", ", colon = ": ";
};
std::string dump_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace tsq::chat
