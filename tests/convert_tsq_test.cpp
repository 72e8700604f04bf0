// A .tsq file converted again: nothing is lost, and what changes nothing gives the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "convert_support.h"
#include "format_files.h"
#include "import/tsq_file.h"

namespace tsq {
namespace {

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ConvertOptions with(TernaryEncoding encoding) {
  ConvertOptions options;
  options.encoding = encoding;
  return options;
}

class Reconvert : public ConvertTest {
 protected:
  // Converts into the folder; the path of what was made.
  fs::path made(const fs::path& source, const char* name, const ConvertOptions& options = {}) {
    const fs::path sources[] = {source};
    const fs::path path = folder_.path() / name;
    const auto summary = convert::convert(sources, path, options);
    EXPECT_TRUE(summary) << name << ": " << summary.error().message();
    return path;
  }
  fs::path made(const GgufBuilder& file, const char* name, const ConvertOptions& options = {}) {
    EXPECT_TRUE(convert_built(file, options));
    fs::rename(target(), folder_.path() / name);
    return folder_.path() / name;
  }
  fs::path sample(const char* name) {
    const fs::path path = folder_.path() / name;
    format::write_bytes(path, format::sample_file().span());
    return path;
  }
  void expect_refused(const fs::path& source, const fs::path& target, ErrorCode code,
                      const std::string& message, const ConvertOptions& options = {}) {
    const fs::path sources[] = {source};
    const auto summary = convert::convert(sources, target, options);
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().code(), code);
    EXPECT_NE(summary.error().message().find(message), std::string::npos)
        << summary.error().message();
  }
};

class ReconvertedFiles : public Reconvert, public testing::WithParamInterface<const char*> {};

// Rotations with and without signs, both tokenizers' kinds of keys, dense types, wide rows.
TEST_P(ReconvertedFiles, AreTheFilesThatTheSourceGives) {
  const fs::path source = kModels / GetParam();
  const std::string t1 = bytes_of(made(source, "t1.tsq", with(TernaryEncoding::t1)));
  const std::string t2 = bytes_of(made(source, "t2.tsq", with(TernaryEncoding::t2)));
  const auto again = [&](const char* from, const char* to, TernaryEncoding encoding) {
    return bytes_of(made(folder_.path() / from, to, with(encoding)));
  };
  EXPECT_TRUE(again("t1.tsq", "t1-t1.tsq", TernaryEncoding::t1) == t1);
  EXPECT_TRUE(again("t1.tsq", "t1-t2.tsq", TernaryEncoding::t2) == t2);
  EXPECT_TRUE(again("t1-t2.tsq", "t1-t2-t1.tsq", TernaryEncoding::t1) == t1);
  open_sound(folder_.path() / "t1-t2.tsq");
}

INSTANTIATE_TEST_SUITE_P(Some, ReconvertedFiles,
                         testing::Values("qwen3_rot64.ptq1_0.gguf", "llama_rot128.pq2_0.gguf",
                                         "qwen3_rot128_wide.ptq1_0.gguf", "llama_tq.tq1_0.gguf",
                                         "qwen3_q4.gguf", "llama_rope_freqs.gguf",
                                         "llama_tensor_scale.i2_s.gguf"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// Rows and inputs that are no whole blocks, values compared one by one.
TEST_F(Reconvert, PaddedShapesKeepEveryValue) {
  const fs::path source = sample("sample.tsq");
  const auto first = open_sound(source);
  for (const auto encoding : {TernaryEncoding::t1, TernaryEncoding::t2}) {
    const fs::path path = made(source, "again.tsq", with(encoding));
    const auto again = open_sound(path);
    ASSERT_EQ(again.file.tensors().size(), first.file.tensors().size());
    for (std::size_t i = 0; i < first.file.tensors().size(); ++i) {
      const format::TensorRecord& a = first.file.tensors()[i];
      const format::TensorRecord& b = again.file.tensors()[i];
      SCOPED_TRACE(a.name);
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.n_dims, b.n_dims);
      EXPECT_EQ(a.dims, b.dims);
      EXPECT_EQ(a.input_rotation, b.input_rotation);
      EXPECT_EQ(a.zero_count, b.zero_count);
      if (format::is_ternary(a.encoding)) {
        EXPECT_EQ(b.encoding, encoding == TernaryEncoding::t1 ? Encoding::t1 : Encoding::t2);
      }
      std::vector<float> x(a.cols()), y(a.cols());
      for (std::uint64_t row = 0; row < a.rows(); ++row) {
        format::decode_row(a.shape(), first.file.bytes(a), row, x.data());
        format::decode_row(b.shape(), again.file.bytes(b), row, y.data());
        ASSERT_EQ(x, y) << "row " << row;
      }
    }
    EXPECT_EQ(again.file.header().model_name, "Sample");  // which is no key of its metadata
    EXPECT_EQ(again.file.header().vocab_size, 6u);
    EXPECT_TRUE(std::ranges::equal(again.file.tokenizer_section(), first.file.tokenizer_section()));
    ASSERT_EQ(again.file.rotations().size(), 2u);
    EXPECT_EQ(again.file.rotations()[0].signs, first.file.rotations()[0].signs);
    EXPECT_EQ(again.file.rotations()[1].block, 16u);
    EXPECT_TRUE(bytes_of(made(path, "once more.tsq", with(encoding))) == bytes_of(path));
  }
}

// A dense row whose last block of 32 is padded.
TEST_F(Reconvert, BlocksThatArePadded) {
  for (const auto& [encoding, flags] : {std::pair{Encoding::q8, 0u},
                                        {Encoding::q4, 0u},
                                        {Encoding::q4, format::kFlagMinimum},
                                        {Encoding::f16, 0u}}) {
    format::FileContents contents = format::sample_contents();
    format::TensorRecord& tensor = contents.tensors[format::kQ8];
    tensor.encoding = encoding;
    tensor.flags = flags;
    tensor.dims = {64, 2, 1, 1};
    format::Bytes bytes = format::make_file(contents, format::sample_token_probe());
    // 64 inputs become 40: codes 40 to 63 are padding now.
    const std::size_t body =
        65536 + format::get<std::uint64_t>(bytes, format::record_at(bytes, format::kQ8, 80));
    const std::size_t n =
        format::get<std::uint64_t>(bytes, format::record_at(bytes, format::kQ8, 88));
    const std::size_t head = flags != 0 ? 4 : 2;
    for (const std::size_t row : {std::size_t{0}, std::size_t{1}}) {
      std::byte* const second = bytes.data() + body + row * n / 2 + n / 4;
      if (encoding == Encoding::f16) {
        std::fill_n(second + 16, 48, std::byte{0});
      } else if (encoding == Encoding::q8) {
        std::fill_n(second + head + 8, 24, std::byte{0});
      } else {  // high nibbles are inputs 16 and up
        const std::byte none{flags != 0 ? std::uint8_t{0} : std::uint8_t{8}};
        for (std::size_t i = 0; i < 16; ++i) {
          std::byte& codes = second[head + i];
          const std::byte low = i < 8 ? codes & std::byte{15} : none;
          codes = low | none << 4;
        }
      }
    }
    format::put<std::uint64_t>(bytes, format::record_at(bytes, format::kQ8, 24), 40);
    format::put(bytes, format::record_at(bytes, format::kQ8, 112),
                xxh3(bytes.span().subspan(body, n)));
    format::sign(bytes);
    const fs::path source = folder_.path() / "padded.tsq";
    format::write_bytes(source, bytes.span());
    const auto first = open_sound(source);
    const auto again = open_sound(made(source, "again.tsq"));
    const auto& record = *again.file.find("eight");
    EXPECT_EQ(record.encoding, encoding);
    EXPECT_EQ(record.cols(), 40u);
    EXPECT_TRUE(
        std::ranges::equal(again.file.body(record), first.file.body(*first.file.find("eight"))));
  }
}

// ---- s34 ----

// STQ1_0: a block of 256 weights is 42 bytes, every bit pattern of its quads is sound.
GgufBuilder sparse_model() {
  auto file = small_model();
  auto rows = gguf::some_bytes(33 * 2 * 42, 3);
  file.add("sparse", gguf::kSTQ1_0, {512, 33}, std::move(rows));
  return file;
}

TEST_F(Reconvert, S34FromAndTo) {
  const auto file = sparse_model();
  const fs::path s34 = made(file, "s34.tsq");
  const std::string t1 = bytes_of(made(file, "t1.tsq", with(TernaryEncoding::t1)));
  const std::string t2 = bytes_of(made(file, "t2.tsq", with(TernaryEncoding::t2)));
  ASSERT_EQ(open_sound(s34).file.find("sparse")->encoding, Encoding::s34);
  EXPECT_TRUE(bytes_of(made(s34, "s34-s34.tsq")) == bytes_of(s34));
  EXPECT_TRUE(bytes_of(made(s34, "s34-t1.tsq", with(TernaryEncoding::t1))) == t1);
  EXPECT_TRUE(bytes_of(made(s34, "s34-t2.tsq", with(TernaryEncoding::t2))) == t2);
  EXPECT_TRUE(bytes_of(made(folder_.path() / "t1.tsq", "t1-s34.tsq")) == bytes_of(s34));
  EXPECT_TRUE(bytes_of(made(folder_.path() / "t2.tsq", "t2-s34.tsq")) == bytes_of(s34));
}

// ---- scales and activations ----

// n times what head(random) gives and n_bytes of body(random).
template <class Head, class Body>
std::vector<std::byte> blocks(std::size_t n, std::size_t n_bytes, Head head, Body body) {
  Random random(4);
  ByteWriter out;
  for (std::size_t i = 0; i < n; ++i) {
    out.write(head(random));
    for (std::size_t k = 0; k < n_bytes; ++k) out.write(body(random));
  }
  return out.take();
}

std::uint8_t any_codes(Random& random) { return static_cast<std::uint8_t>(random.codes()); }
// One 0 in four codes, which IQ2_BN has 16 apart.
std::uint8_t quad_of_s34(Random& random) {
  constexpr std::uint8_t kQuads[] = {0xa4, 0x86, 0x18, 0x42};
  return kQuads[random.below(4)];
}
std::uint16_t f16_scale(Random& random) { return random.scale(); }
float f32_scale(Random& random) {  // seldom an fp16 number
  return 0.001f * static_cast<float>(random.below(10000)) - 5;
}

// Scales of rows and of a tensor; rows that end within a group, and that fill no block.
GgufBuilder model_of_scales(const std::string& architecture) {
  auto file = small_model();
  file.set("general.architecture", gguf::text(architecture));
  file.set(architecture + ".embedding_length", gguf::u32(128));
  file.set(architecture + ".block_count", gguf::u32(1));
  file.add("rows", gguf::kIQ2_BN, {192, 33}, blocks(33, 48, f32_scale, any_codes));
  file.add("quads", gguf::kIQ2_BN, {192, 33}, blocks(33, 48, f32_scale, quad_of_s34));
  auto one = blocks(33 * 96, 0, any_codes, any_codes);
  const auto scale = gguf::f32_bytes({0.037109f, 0, 0, 0, 0, 0, 0, 0});
  one.insert(one.end(), scale.begin(), scale.end());
  file.add("one", gguf::kI2_S, {384, 33}, std::move(one));
  return file;
}

TEST_F(Reconvert, ScalesOfRowsAndTensorsAreKept) {
  const auto file = model_of_scales("llama");
  const fs::path first = made(file, "first.tsq");
  const fs::path t1 = made(file, "t1.tsq", with(TernaryEncoding::t1));
  const fs::path t2 = made(file, "t2.tsq", with(TernaryEncoding::t2));
  const auto opened = open_sound(first);
  EXPECT_EQ(opened.file.find("rows")->scale_kind, format::ScaleKind::per_row);
  EXPECT_EQ(opened.file.find("quads")->scale_kind, format::ScaleKind::per_row);
  EXPECT_EQ(opened.file.find("quads")->encoding, Encoding::s34);
  EXPECT_EQ(opened.file.find("one")->scale_kind, format::ScaleKind::per_tensor);
  for (const fs::path& source : {first, t1, t2}) {
    SCOPED_TRACE(source.filename());
    EXPECT_TRUE(bytes_of(made(source, "to.tsq")) == bytes_of(first));
    EXPECT_TRUE(bytes_of(made(source, "to.tsq", with(TernaryEncoding::t1))) == bytes_of(t1));
    EXPECT_TRUE(bytes_of(made(source, "to.tsq", with(TernaryEncoding::t2))) == bytes_of(t2));
  }
}

// What a file says of its activations holds, whatever its architecture has by itself.
TEST_F(Reconvert, ActivationsOfEachTensorAreKept) {
  for (const char* const architecture : {"llama", "bitnet"}) {
    SCOPED_TRACE(architecture);
    const fs::path source = made(model_of_scales(architecture), "source.tsq");
    format::Bytes bytes = format::read_file(source);
    const auto quant_of = [](const format::TensorRecord& tensor) {
      return !format::is_ternary(tensor.encoding) ? format::ActivationQuant::none
             : tensor.name == "rows"              ? format::ActivationQuant::per_token
                                                  : format::ActivationQuant::per_group;
    };
    const auto first = open_sound(source);
    for (std::size_t i = 0; i < first.file.tensors().size(); ++i) {
      format::put(bytes, format::record_at(bytes, i, 60), quant_of(first.file.tensors()[i]));
    }
    bytes.data()[72] |= std::byte{1 << 4};
    format::sign(bytes);
    const fs::path mixed = folder_.path() / "mixed.tsq";
    format::write_bytes(mixed, bytes.span());

    const fs::path t2 = made(mixed, "t2.tsq", with(TernaryEncoding::t2));
    const auto converted = open_sound(t2);
    for (const format::TensorRecord& tensor : converted.file.tensors()) {
      EXPECT_EQ(tensor.activation_quant, quant_of(tensor)) << tensor.name;
    }
    EXPECT_TRUE(bytes_of(made(t2, "from t2.tsq")) == bytes_of(mixed));
    EXPECT_TRUE(bytes_of(made(mixed, "again.tsq")) == bytes_of(mixed));
  }
}

TEST_F(Reconvert, HalfGroupsAreKept) {
  auto file = small_model();
  file.add("narrow", gguf::kQ2_0, {192, 33}, blocks(33 * 3, 16, f16_scale, any_codes));
  file.add("wide", gguf::kQ2_0, {768, 40}, blocks(40 * 12, 16, f16_scale, any_codes));
  const fs::path first = made(file, "first.tsq");
  const auto opened = open_sound(first);
  for (const char* const name : {"narrow", "wide"}) {
    EXPECT_EQ(opened.file.find(name)->flags, format::kFlagHalfGroups) << name;
  }
  const std::string t2 = bytes_of(made(file, "t2.tsq", with(TernaryEncoding::t2)));
  const fs::path first_t2 = made(first, "first-t2.tsq", with(TernaryEncoding::t2));
  EXPECT_TRUE(bytes_of(first_t2) == t2);
  EXPECT_TRUE(bytes_of(made(first_t2, "first-t2-first.tsq")) == bytes_of(first));
  EXPECT_TRUE(bytes_of(made(first, "first-first.tsq")) == bytes_of(first));

  expect_refused(first, target(), ErrorCode::unsupported,
                 "'narrow': row 0 has two scales in a group of 128", with(TernaryEncoding::t1));
  ConvertOptions t1_or_q4 = with(TernaryEncoding::t1);
  t1_or_q4.dense = convert::DenseEncoding::q4;
  const std::string q4 = bytes_of(made(file, "q4.tsq", t1_or_q4));
  EXPECT_TRUE(bytes_of(made(first, "first-q4.tsq", t1_or_q4)) == q4);
}

// ---- dense ----

TEST_F(Reconvert, DenseMayBeRounded) {
  ConvertOptions options;
  options.dense = convert::DenseEncoding::q8;
  const fs::path exact = made(kModels / "llama_tied.gguf", "exact.tsq");
  const std::string direct = bytes_of(made(kModels / "llama_tied.gguf", "q8.tsq", options));
  EXPECT_TRUE(bytes_of(made(exact, "exact-q8.tsq", options)) == direct);
  EXPECT_TRUE(bytes_of(made(folder_.path() / "q8.tsq", "q8-q8.tsq", options)) == direct);
}

// ---- the token probe ----

TEST_F(Reconvert, TheProbeIsMadeAgain) {
  const fs::path source = sample("sample.tsq");
  ConvertOptions options;
  options.token_probe = [](const fs::path& temporary) -> Result<format::TokenProbe> {
    EXPECT_EQ(format::open(temporary)->file.token_probe().state, format::TokenProbeState::empty);
    auto probe = format::sample_token_probe();
    probe.mean_nll = 0.25;
    return probe;
  };
  EXPECT_EQ(open_sound(made(source, "again.tsq", options)).file.token_probe().mean_nll, 0.25);
}

TEST_F(Reconvert, WithoutAProbeTheOldOneStaysIfItHolds) {
  const fs::path source = sample("sample.tsq");
  const auto probe_after = [&](const ConvertOptions& options) {
    return open_sound(made(source, "again.tsq", options)).file.token_probe();
  };
  for (const auto encoding : {TernaryEncoding::t1, TernaryEncoding::t2}) {
    const auto kept = probe_after(with(encoding));
    EXPECT_EQ(kept.state, format::TokenProbeState::present);
    EXPECT_EQ(kept.mean_nll, 1.25);  // above 0.9 ln 6 nobody asked: that was its first conversion
    EXPECT_EQ(kept.tokens, (std::vector<std::uint32_t>{1, 2, 5}));
    EXPECT_EQ(kept.greedy, (std::vector<std::uint32_t>{0}));
  }
  ConvertOptions rounded;
  rounded.dense = convert::DenseEncoding::q4;  // of "eight" and "brain"
  EXPECT_EQ(probe_after(rounded).state, format::TokenProbeState::not_asked);
}

// ---- refusals ----

TEST_F(Reconvert, ADamagedSourceIsRefused) {
  const fs::path source = sample("sample.tsq");
  format::Bytes bytes = format::copy_of(format::sample_file().span());
  bytes[bytes.size() - 64] ^= std::byte{1};  // of the last tensor
  format::write_bytes(source, bytes.span());
  expect_refused(source, target(), ErrorCode::damaged,
                 "sample.tsq: tensor 'eight': XXH3-64 of its bytes: found ");
  format::write_bytes(source, format::sample_file().span().first(70000));
  expect_refused(source, target(), ErrorCode::damaged, "the file has 70000");
  EXPECT_FALSE(fs::exists(target()));
}

TEST_F(Reconvert, AFileThatWasNeverFinishedIsRefused) {
  const fs::path source = folder_.path() / "empty slot.tsq";
  format::write_bytes(source, format::make_file(format::sample_contents()).span());
  expect_refused(source, target(), ErrorCode::damaged, "token probe: found an empty slot");
}

TEST_F(Reconvert, TheSourceIsNoTarget) {
  const fs::path source = sample("sample.tsq");
  fs::create_symlink(source, folder_.path() / "symbolic.tsq");
  fs::create_hard_link(source, folder_.path() / "hard.tsq");
  for (const char* name : {"sample.tsq", "symbolic.tsq", "hard.tsq"}) {
    expect_refused(source, folder_.path() / name, ErrorCode::invalid_argument, "the source itself");
  }
  EXPECT_TRUE(std::ranges::equal(format::read_file(source).span(), format::sample_file().span()));
}

TEST_F(Reconvert, ATsqFileIsAWholeModel) {
  const fs::path sources[] = {kModels / "qwen3_q4.gguf", sample("sample.tsq")};
  const auto summary = convert::convert(sources, target());
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code(), ErrorCode::invalid_argument);
  EXPECT_NE(summary.error().message().find("sample.tsq: 2 sources were given"), std::string::npos)
      << summary.error().message();
}

// Something that this build does not know may describe what it leaves out.
TEST_F(Reconvert, UnknownOptionalFeaturesAreNamed) {
  format::Bytes bytes = format::copy_of(format::sample_file().span());
  format::put<std::uint64_t>(bytes, 80, 4);
  format::sign(bytes);
  const fs::path source = folder_.path() / "newer.tsq";
  format::write_bytes(source, bytes.span());
  const fs::path sources[] = {source};
  const auto summary = convert::convert(sources, target());
  ASSERT_TRUE(summary) << summary.error().message();
  ASSERT_EQ(summary->warnings.size(), 1u);
  EXPECT_NE(summary->warnings[0].find("optional features 0x4"), std::string::npos);
  EXPECT_EQ(open_sound(target()).file.header().optional_features, 0u);
}

}  // namespace
}  // namespace tsq
