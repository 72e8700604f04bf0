// The arrays of a GGUF's tokenizer, whatever stands in them: the importer says what is wrong, or
// the section that is built of them is sound and its tokenizer gives texts back.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/byte_writer.h"
#include "format/tokenizer_section.h"
#include "import/vocabulary.h"
#include "input.h"
#include "tokenizer/make.h"
#include "tokenizer/sentencepiece.h"

namespace {

using namespace tsq;

constexpr const char* kPres[] = {"gpt-2",       "smollm",  "qwen2",         "qwen35",
                                 "deepseek-v3", "hunyuan", "hunyuan-dense", "llama-bpe",
                                 "falcon3",     "default", "of-nobody"};

// GPT-2's alphabet: printable bytes are themselves, the others follow from U+0100 on.
std::string gpt2_text(std::string_view bytes) {
  static const auto characters = [] {
    std::array<unsigned, 256> all{};
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool itself = (b >= 33 && b <= 126) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      all[b] = itself ? b : next++;
    }
    return all;
  }();
  std::string text;
  for (const char byte : bytes) {
    const unsigned c = characters[static_cast<unsigned char>(byte)];
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {
      text += static_cast<char>(0xc0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return text;
}

std::string byte_token(unsigned byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

// What the input makes: a tokenizer as a GGUF has it.
struct Arrays {
  bool sentencepiece = false, has_types = false, has_scores = false;
  std::string pre;
  std::vector<std::string> tokens, merges;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
};

Arrays read_arrays(fuzz::Input& in) {
  Arrays a;
  const std::uint8_t kind = in.byte();
  a.sentencepiece = (kind & 1) != 0;
  const bool all_bytes = (kind & 2) == 0, own_alphabet = (kind & 4) == 0;
  a.has_types = (kind & 8) == 0;
  a.has_scores = a.sentencepiece != ((kind & 16) != 0);
  const bool add_results = (kind & 32) == 0;
  a.pre = kPres[in.byte() % std::size(kPres)];
  const auto add = [&](std::string text, std::int32_t type, float score) {
    a.tokens.push_back(std::move(text));
    a.types.push_back(type);
    a.scores.push_back(score);
  };
  for (unsigned b = 0; all_bytes && b < 256; ++b) {
    const char byte = static_cast<char>(b);
    add(a.sentencepiece ? byte_token(b) : gpt2_text({&byte, 1}), a.sentencepiece ? 6 : 1, 0);
  }
  for (std::size_t n = in.byte(); n > 0 && !in.empty(); --n) {
    const std::uint8_t head = in.byte();
    const std::string_view raw = in.text(head >> 3);
    const bool encode = own_alphabet && !a.sentencepiece && head % 8 != 3 && head % 8 != 4;
    const auto score = static_cast<float>(static_cast<std::int8_t>(in.byte())) / 4;
    add(encode ? gpt2_text(raw) : std::string(raw), head % 8, score);
  }
  for (std::size_t n = a.sentencepiece ? 0 : in.byte(); n > 0 && !in.empty(); --n) {
    const std::size_t left = in.below(a.tokens.size() + 1), right = in.below(a.tokens.size() + 1);
    if (left == a.tokens.size() || right == a.tokens.size()) {
      a.merges.emplace_back(in.text(in.byte() % 16));
      continue;
    }
    a.merges.push_back(a.tokens[left] + ' ' + a.tokens[right]);
    if (add_results) add(a.tokens[left] + a.tokens[right], 1, 0);
  }
  return a;
}

class MetadataWriter {
 public:
  template <class T>
  void write(std::string_view key, T value) {
    write_entry(out_, key, value);
    ++count_;
  }
  template <class T>
  void write_array(std::string_view key, ValueType element, const std::vector<T>& values) {
    out_.write<std::uint64_t>(key.size());
    out_.write_text(key);
    out_.write(static_cast<std::uint32_t>(ValueType::array));
    out_.write(static_cast<std::uint32_t>(element));
    out_.write<std::uint64_t>(values.size());
    for (const T& value : values) write_value(value);
    ++count_;
  }
  std::vector<std::byte> take() { return out_.take(); }
  std::uint64_t count() const { return count_; }

 private:
  void write_value(const std::string& text) {
    out_.write<std::uint64_t>(text.size());
    out_.write_text(text);
  }
  template <class T>
  void write_value(T number) {
    out_.write(number);
  }
  ByteWriter out_;
  std::uint64_t count_ = 0;
};

void write_ids_and_flags(fuzz::Input& in, std::size_t n_tokens, MetadataWriter& out) {
  for (const char* key : {"bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id",
                          "eot_token_id", "eom_token_id"}) {
    const std::uint8_t head = in.byte();
    if (head % 4 == 0) continue;
    const std::uint32_t id =
        head == 255 ? 0xffffffff : static_cast<std::uint32_t>(in.below(n_tokens + 2));
    out.write(std::string("tokenizer.ggml.") + key, id);
  }
  for (const char* key :
       {"add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces"}) {
    const std::uint8_t head = in.byte();
    if (head % 4 != 0) out.write(std::string("tokenizer.ggml.") + key, head % 4 == 1);
  }
}

bool has_every_byte(const format::TokenizerView& view) {
  bool found[256] = {};
  const bool any_type = view.model() == format::TokenizerModel::byte_bpe;
  for (std::uint32_t id = 0; id < view.size(); ++id) {
    if (view.token(id).size() != 1) continue;
    if (any_type || view.type(id) == format::TokenType::byte)
      found[static_cast<unsigned char>(view.token(id)[0])] = true;
  }
  return std::all_of(std::begin(found), std::end(found), [](bool there) { return there; });
}

void use(const format::TokenizerView& view, std::string_view text) {
  const auto tokenizer = make_tokenizer(view);
  if (!tokenizer) std::abort();
  for (const bool parse_special : {false, true}) {
    const auto tokens = tokenizer->encode(text, {.parse_special = parse_special});
    if (!tokens) std::abort();
    auto inner = std::span(*tokens);
    if (view.add_bos()) inner = inner.subspan(1);
    if (view.add_eos()) inner = inner.first(inner.size() - 1);
    for (const Token token : inner)
      if (static_cast<std::uint32_t>(token) >= view.size()) std::abort();
    if (!has_every_byte(view) || view.nfc()) continue;
    const bool marks = view.model() == format::TokenizerModel::sentencepiece_bpe;
    if (view.space_prefix() && parse_special) continue;  // a space after each control token
    const std::string expected = marks ? replace_space_marks(text) : std::string(text);
    if (tokenizer->decode(inner, {.strip_space_prefix = true}) != expected) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const Arrays arrays = read_arrays(in);
  MetadataWriter out;
  out.write("tokenizer.ggml.model", arrays.sentencepiece ? "llama" : "gpt2");
  out.write("tokenizer.ggml.pre", arrays.pre.c_str());
  out.write_array("tokenizer.ggml.tokens", ValueType::string, arrays.tokens);
  if (arrays.has_types) out.write_array("tokenizer.ggml.token_type", ValueType::i32, arrays.types);
  if (!arrays.sentencepiece)
    out.write_array("tokenizer.ggml.merges", ValueType::string, arrays.merges);
  if (arrays.has_scores) out.write_array("tokenizer.ggml.scores", ValueType::f32, arrays.scores);
  write_ids_and_flags(in, arrays.tokens.size(), out);

  const std::uint64_t count = out.count();
  const auto bytes = out.take();
  ByteReader reader(bytes);
  auto metadata = Metadata::parse(reader, count);
  if (!metadata || reader.left() != 0) std::abort();
  importer::Checkpoint checkpoint;
  checkpoint.metadata = std::move(*metadata);
  if (const auto read = importer::read_vocabulary(checkpoint); !read) {
    if (read.error().message().empty()) std::abort();
    return 0;
  }
  if (!checkpoint.vocabulary) {
    if (checkpoint.no_vocabulary.empty()) std::abort();
    return 0;
  }
  const auto section = format::build_tokenizer_section(*checkpoint.vocabulary);
  if (!section) {
    if (section.error().message().empty()) std::abort();
    return 0;
  }
  const auto n = static_cast<std::uint32_t>(checkpoint.vocabulary->tokens.size());
  const auto view = format::TokenizerView::parse(*section, n);
  if (!view || !view->check()) std::abort();
  use(*view, in.rest());
  return 0;
}
