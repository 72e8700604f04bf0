// A Jinja template, in the subset that chat templates use, set up as transformers does:
// trim_blocks, lstrip_blocks, the immutable sandbox, loop controls, its own tojson, raise_exception
// and strftime_now. Values of Python that nothing prints (iterators) are lists here.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "chat/budget.h"
#include "chat/value.h"

namespace tsq::chat {

struct RenderOptions {
  Limits limits;
  std::optional<std::tm> now;  // what strftime_now formats; absent: the local time
};

// Immutable: any number of threads may render one at a time.
class Template {
 public:
  // Sources of more than 1 MiB are refused.
  static Result<Template> parse(std::string_view source);

  // context: a dict of the variables. invalid_argument with the template's own message where it
  // calls raise_exception; damaged where Jinja would fail too, unsupported where a limit is met or
  // something is not built, both with the line.
  Result<std::string> render(const Value& context, const RenderOptions& options = {}) const;

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

 private:
  struct Tree;
  explicit Template(std::unique_ptr<const Tree> tree);

  std::unique_ptr<const Tree> tree_;
};

}  // namespace tsq::chat
