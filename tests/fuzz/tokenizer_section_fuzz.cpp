// Whatever the bytes of a tokenizer section: it is refused, or every text can be encoded with it
// and nothing outside it is read; where check() finds it sound too, texts come back. An input is a
// byte n, n bytes of text, then the section.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "check_tokenizer.h"
#include "input.h"
#include "tokenizer/make.h"
#include "tokenizer/sentencepiece.h"

namespace {

using namespace tsq;

constexpr std::size_t kVocabSizeAt = 12;

// Whether encode() has a token for each byte, and decode() gives them back.
bool is_complete(const format::TokenizerView& view) {
  bool found[256] = {};
  for (std::uint32_t id = 0; id < view.size(); ++id) {
    if (view.token(id).size() != 1) continue;
    if (view.model() == format::TokenizerModel::byte_bpe ||
        view.type(id) == format::TokenType::byte)
      found[static_cast<unsigned char>(view.token(id)[0])] = true;
  }
  return std::all_of(std::begin(found), std::end(found), [](bool there) { return there; });
}

void check_decoding(const Tokenizer& tokenizer, const format::TokenizerView& view,
                    std::string_view text, std::span<const Token> tokens, bool parse_special) {
  if (view.nfc() || !is_complete(view)) return;
  if (view.space_prefix() && parse_special) return;  // a space after each control token
  const bool marks = view.model() == format::TokenizerModel::sentencepiece_bpe;
  const std::string expected = marks ? replace_space_marks(text) : std::string(text);
  if (tokenizer.decode(tokens, {.strip_space_prefix = true}) != expected) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const std::string_view text = in.text(in.byte());
  const std::string_view rest = in.rest();
  Buffer<std::byte> section(rest.size());
  if (!rest.empty()) std::memcpy(section.data(), rest.data(), rest.size());
  std::uint32_t vocab_size = 0;
  if (rest.size() >= kVocabSizeAt + sizeof vocab_size)
    std::memcpy(&vocab_size, section.data() + kVocabSizeAt, sizeof vocab_size);

  const auto view = format::TokenizerView::parse(section.span(), vocab_size);
  if (!view) {
    if (view.error().message().empty()) std::abort();
    return 0;
  }
  fuzz::check_tokenizer(*view);
  const bool sound = view->check().ok();
  const auto tokenizer = make_tokenizer(*view);
  if (!tokenizer) std::abort();
  for (const bool parse_special : {false, true}) {
    const auto tokens =
        tokenizer->encode(text, {.add_special = false, .parse_special = parse_special});
    if (!tokens) std::abort();
    for (const Token token : *tokens)
      if (static_cast<std::uint32_t>(token) >= view->size()) std::abort();
    (void)tokenizer->decode(*tokens, {.skip_control = true});
    if (sound) check_decoding(*tokenizer, *view, text, *tokens, parse_special);
  }
  return 0;
}
