#include "chat/template.h"

#include <new>

#include "chat/interpreter.h"
#include "chat/parser.h"

namespace tsq::chat {
namespace {

constexpr std::size_t kMaxSource = 1 << 20;

Error out_of_memory() { return {ErrorCode::out_of_memory, "no memory for the chat template"}; }

}  // namespace

struct Template::Tree {
  Body body;
};

Template::Template(std::unique_ptr<const Tree> tree) : tree_(std::move(tree)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kMaxSource) {
    return errorf(ErrorCode::unsupported, "a template of %zu bytes, expected at most %zu",
                  source.size(), kMaxSource);
  }
  try {
    return Template(std::make_unique<const Tree>(Tree{parse_template(source)}));
  } catch (const Failure& failure) {
    return Error(failure.code, failure.message);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<std::string> Template::render(const Value& context, const RenderOptions& options) const {
  assert(context.if_dict());
  Interpreter interpreter(context, options.limits, options.now);
  try {
    return interpreter.run(tree_->body);
  } catch (const Failure& failure) {
    if (failure.code == ErrorCode::invalid_argument) return Error(failure.code, failure.message);
    return errorf(failure.code, "line %d: %s", interpreter.line(), failure.message.c_str());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace tsq::chat
