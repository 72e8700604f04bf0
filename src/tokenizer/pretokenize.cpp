// The split patterns are those of the models' tokenizer.json, run by PCRE2. White space is written
// out as Unicode's White_Space, since PCRE2's \s adds U+180E. Every character fits one of the
// alternatives, so an anchored match walks a text without gaps, and none of them can be tried in
// more than linear time: a repeat gives characters back one by one, once, and needs no stack.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pretokenize.h"

#include <pcre2.h>

#include <cstdint>
#include <new>
#include <string>

#include "base/errorf.h"

namespace tsq {
namespace {

#define TSQ_SPACE \
  R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr char kGpt2[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^)" TSQ_SPACE R"(\p{L}\p{N}]+)"
    "|[" TSQ_SPACE "]+(?![^" TSQ_SPACE "])|[" TSQ_SPACE "]+";

// GPT-2's on what is left after each \p{N} was cut out as a piece: a number ends a text of its own.
constexpr char kSmollm[] =
    R"(\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^)" TSQ_SPACE R"(\p{L}\p{N}]+)"
    "|[" TSQ_SPACE "]+(?![^" TSQ_SPACE R"(\p{N}])|[)" TSQ_SPACE "]+";

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*
// |\s*[\r\n]+|\s+(?!\S)|\s+
constexpr char kQwen2[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^)" TSQ_SPACE
    R"(\p{L}\p{N}]+[\r\n]*|[)" TSQ_SPACE R"(]*[\r\n]+)"
    "|[" TSQ_SPACE "]+(?![^" TSQ_SPACE "])|[" TSQ_SPACE "]+";

#undef TSQ_SPACE

const char* pattern_of(format::PreTokenizer kind) {
  switch (kind) {
    case format::PreTokenizer::gpt2:
      return kGpt2;
    case format::PreTokenizer::smollm:
      return kSmollm;
    case format::PreTokenizer::qwen2:
      return kQwen2;
  }
  return kGpt2;  // not reached: the view holds one of them
}

Error pcre2_error(const char* what, int code) {
  if (code == PCRE2_ERROR_NOMEMORY) {
    return errorf(ErrorCode::out_of_memory, "no memory to %s", what);
  }
  unsigned char message[128] = "unknown error";
  pcre2_get_error_message(code, message, sizeof message);
  return errorf(ErrorCode::unsupported, "pcre2 cannot %s: %s (%d)", what,
                reinterpret_cast<const char*>(message), code);
}

template <class T, void (*free)(T*)>
struct Freed {
  void operator()(T* object) const { free(object); }
};
using MatchContext =
    std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context, pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data, pcre2_match_data_free>>;
using Code = std::unique_ptr<pcre2_code, Freed<pcre2_code, pcre2_code_free>>;

}  // namespace

struct Splitter::Pattern {
  Code code;
  MatchContext context;
};

void Splitter::Free::operator()(Pattern* pattern) const { delete pattern; }

Result<Splitter> Splitter::create(format::PreTokenizer kind, bool jit) {
  const char* const pattern = pattern_of(kind);
  int error = 0;
  std::size_t offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr));
  if (!code) return pcre2_error("compile the split pattern", error);
  // Where there is no JIT, pcre2_match() interprets.
  if (jit) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  MatchContext context(pcre2_match_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  // Giving back a long run counts as one match a character; the default limits are meant for
  // patterns that can explode.
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  pcre2_set_heap_limit(context.get(), UINT32_MAX);
  pcre2_set_depth_limit(context.get(), UINT32_MAX);
  return Splitter(new Pattern{std::move(code), std::move(context)});
}

Result<void> Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const MatchData match(pcre2_match_data_create(1, nullptr));
  if (!match) throw std::bad_alloc();
  const std::size_t* const range = pcre2_get_ovector_pointer(match.get());
  for (std::size_t start = 0; start < text.size(); start = range[1]) {
    const int found =
        pcre2_match(pattern_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    start, PCRE2_NO_UTF_CHECK, match.get(), pattern_->context.get());
    if (found < 0) return pcre2_error("split the text", found);
    pieces.push_back(text.substr(start, range[1] - start));
  }
  return {};
}

}  // namespace tsq
