// The split patterns are those of the models' tokenizer.json, run by PCRE2. What lies between two
// matches is a piece too; where there are several patterns, each one splits the pieces of the one
// before. No alternative can be tried in more than linear time: a repeat gives characters back one
// by one, once, and needs no stack.
//
// The classes are those of Hugging Face tokenizers 0.23.3, compared over every code point. There
// \p{L}, \p{N}, \p{M}, \p{P} and \p{S} are Unicode 16's, and cutting digits (smollm) goes by
// Unicode 17; PCRE2 10.42 knows Unicode 14, so what came later is written out, and any PCRE2 up to
// Unicode 16 gives the same tokens. White space is White_Space written out: PCRE2's \s adds U+180E.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pretokenize.h"

#include <pcre2.h>

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "base/errorf.h"

namespace tsq {
namespace {

constexpr char kSpace[] =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f})"
    R"(\x{3000})";
constexpr char kLetter[] =
    R"(\p{L}\x{1c89}-\x{1c8a}\x{a7cb}-\x{a7cd}\x{a7da}-\x{a7dc}\x{105c0}-\x{105f3})"
    R"(\x{10d4a}-\x{10d65}\x{10d6f}-\x{10d85}\x{10ec2}-\x{10ec4}\x{1123f}-\x{11240})"
    R"(\x{11380}-\x{11389}\x{1138b}\x{1138e}\x{11390}-\x{113b5}\x{113b7}\x{113d1}\x{113d3})"
    R"(\x{11bc0}-\x{11be0}\x{11f02}\x{11f04}-\x{11f10}\x{11f12}-\x{11f33}\x{1342f})"
    R"(\x{13441}-\x{13446}\x{13460}-\x{143fa}\x{16100}-\x{1611d}\x{16d40}-\x{16d6c}\x{18cff})"
    R"(\x{1b132}\x{1b155}\x{1df25}-\x{1df2a}\x{1e030}-\x{1e06d}\x{1e4d0}-\x{1e4eb})"
    R"(\x{1e5d0}-\x{1e5ed}\x{1e5f0}\x{2b739}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af})";
constexpr char kNumber[] =
    R"(\p{N}\x{10d40}-\x{10d49}\x{116d0}-\x{116e3}\x{11bf0}-\x{11bf9}\x{11f50}-\x{11f59})"
    R"(\x{16130}-\x{16139}\x{16d70}-\x{16d79}\x{1ccf0}-\x{1ccf9}\x{1d2c0}-\x{1d2d3})"
    R"(\x{1e4f0}-\x{1e4f9}\x{1e5f1}-\x{1e5fa})";
constexpr char kMark[] =
    R"(\p{M}\x{897}\x{cf3}\x{ece}\x{10d69}-\x{10d6d}\x{10efc}-\x{10eff}\x{11241}\x{113b8}-\x{113c0})"
    R"(\x{113c2}\x{113c5}\x{113c7}-\x{113ca}\x{113cc}-\x{113d0}\x{113d2}\x{113e1}-\x{113e2})"
    R"(\x{11f00}-\x{11f01}\x{11f03}\x{11f34}-\x{11f3a}\x{11f3e}-\x{11f42}\x{11f5a}\x{13440})"
    R"(\x{13447}-\x{13455}\x{1611e}-\x{1612f}\x{1e08f}\x{1e4ec}-\x{1e4ef}\x{1e5ee}-\x{1e5ef})";
constexpr char kPunctuation[] =
    R"(\p{P}\x{1b4e}-\x{1b4f}\x{1b7f}\x{10d6e}\x{113d4}-\x{113d5}\x{113d7}-\x{113d8})"
    R"(\x{11b00}-\x{11b09}\x{11be1}\x{11f43}-\x{11f4f}\x{16d6d}-\x{16d6f}\x{1e5ff})";
constexpr char kSymbol[] =
    R"(\p{S}\x{2427}-\x{2429}\x{2ffc}-\x{2fff}\x{31e4}-\x{31e5}\x{31ef}\x{10d8e}-\x{10d8f})"
    R"(\x{1cc00}-\x{1ccef}\x{1cd00}-\x{1ceb3}\x{1f6dc}\x{1f774}-\x{1f776}\x{1f77b}-\x{1f77f})"
    R"(\x{1f7d9}\x{1f8b2}-\x{1f8bb}\x{1f8c0}-\x{1f8c1}\x{1fa75}-\x{1fa77}\x{1fa87}-\x{1fa89})"
    R"(\x{1fa8f}\x{1faad}-\x{1faaf}\x{1fabb}-\x{1fabf}\x{1fac6}\x{1face}-\x{1facf})"
    R"(\x{1fada}-\x{1fadc}\x{1fadf}\x{1fae8}-\x{1fae9}\x{1faf7}-\x{1faf8}\x{1fbcb}-\x{1fbef})";
constexpr char kNumberSince17[] = R"(\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6})";

// In the patterns below S, L, N, M, P and Y are the classes above.

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr char kGpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?[L]+| ?[N]+| ?[^SLN]+|[S]+(?![^S])|[S]+";

// GPT-2's on what is left after each number character was cut out as a piece: so one of them ends
// a text as far as white space is concerned.
constexpr char kSmollm[] = "[N]|'s|'t|'re|'ve|'m|'ll|'d| ?[L]+| ?[^SLN]+|[S]+(?![^SN])|[S]+";

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*
// |\s*[\r\n]+|\s+(?!\S)|\s+
constexpr char kQwen2[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?[L]+|[N]| ?[^SLN]+[\r\n]*"
    "|[S]*[\r\n]+|[S]+(?![^S])|[S]+";

// Qwen2's with numbers in runs of one to three.
constexpr char kLlamaBpe[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?[L]+|[N]{1,3}| ?[^SLN]+[\r\n]*"
    "|[S]*[\r\n]+|[S]+(?![^S])|[S]+";

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}
// | ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr char kQwen35[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?[LM]+|[N]| ?[^SLMN]+[\r\n]*"
    "|[S]*[\r\n]+|[S]+(?![^S])|[S]+";

// DeepSeek V3's and Hunyuan's, in three steps: \p{N}{1,3}, [一-龥぀-ゟ゠-ヿ]+, and
// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
// | ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr char kDeepseekNumbers[] = "[N]{1,3}";
constexpr char kDeepseekCjk[] = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)";
constexpr char kDeepseekRest[] = R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\nLPY]?[LM]+| ?[PY]+[\r\n]*)"
                                 R"(|[S]*[\r\n]+|[S]+(?![^S])|[S]+)";

std::string expand(std::string_view pattern, const std::string& number) {
  std::string expanded;
  for (const char c : pattern) {
    switch (c) {
      case 'S':
        expanded += kSpace;
        break;
      case 'L':
        expanded += kLetter;
        break;
      case 'N':
        expanded += number;
        break;
      case 'M':
        expanded += kMark;
        break;
      case 'P':
        expanded += kPunctuation;
        break;
      case 'Y':
        expanded += kSymbol;
        break;
      default:
        expanded += c;
    }
  }
  return expanded;
}

std::vector<std::string> patterns_of(format::PreTokenizer kind) {
  switch (kind) {
    case format::PreTokenizer::gpt2:
      return {expand(kGpt2, kNumber)};
    case format::PreTokenizer::smollm:
      return {expand(kSmollm, std::string(kNumber) + kNumberSince17)};
    case format::PreTokenizer::llama_bpe:
      return {expand(kLlamaBpe, kNumber)};
    case format::PreTokenizer::qwen35:
      return {expand(kQwen35, kNumber)};
    case format::PreTokenizer::deepseek_v3:
      return {expand(kDeepseekNumbers, kNumber), kDeepseekCjk, expand(kDeepseekRest, kNumber)};
    case format::PreTokenizer::qwen2:
      break;
  }
  return {expand(kQwen2, kNumber)};
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

struct Splitter::Patterns {
  std::vector<Code> codes;
  MatchContext context;
};

void Splitter::Free::operator()(Patterns* patterns) const { delete patterns; }

Result<Splitter> Splitter::create(format::PreTokenizer kind, bool jit) {
  std::vector<Code> codes;
  for (const std::string& pattern : patterns_of(kind)) {
    int error = 0;
    std::size_t offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (!code) return pcre2_error("compile the split pattern", error);
    // Where there is no JIT, pcre2_match() interprets.
    if (jit) pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    codes.push_back(std::move(code));
  }
  MatchContext context(pcre2_match_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  // Giving back a long run counts as one match a character; the default limits are meant for
  // patterns that can explode.
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  pcre2_set_heap_limit(context.get(), UINT32_MAX);
  pcre2_set_depth_limit(context.get(), UINT32_MAX);
  return Splitter(new Patterns{std::move(codes), std::move(context)});
}

Result<void> Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const MatchData match(pcre2_match_data_create(1, nullptr));
  if (!match) throw std::bad_alloc();
  const std::size_t* const range = pcre2_get_ovector_pointer(match.get());
  std::vector<std::string_view> parts = {text}, smaller;
  for (const Code& code : patterns_->codes) {
    smaller.clear();
    for (const std::string_view part : parts) {
      for (std::size_t start = 0; start < part.size(); start = range[1]) {
        const int found =
            pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(part.data()), part.size(), start,
                        PCRE2_NO_UTF_CHECK, match.get(), patterns_->context.get());
        if (found < 0 && found != PCRE2_ERROR_NOMATCH) return pcre2_error("split the text", found);
        const std::size_t gap_end = found < 0 ? part.size() : range[0];
        if (gap_end != start) smaller.push_back(part.substr(start, gap_end - start));
        if (found < 0) break;
        smaller.push_back(part.substr(range[0], range[1] - range[0]));
      }
    }
    parts.swap(smaller);
  }
  pieces.insert(pieces.end(), parts.begin(), parts.end());
  return {};
}

}  // namespace tsq
