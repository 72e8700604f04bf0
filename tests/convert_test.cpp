// Conversion: header, metadata, summary, token probe; every refusal leaves nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "convert_support.h"

namespace tsq {
namespace {

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// ---- header, metadata, summary ----

TEST_F(ConvertTest, KeepsMetadataButWhatOtherSectionsHold) {
  auto file = with_tokenizer();
  file.set("split.count", gguf::u16(1));
  file.set("some.list", gguf::array(ValueType::f64, std::vector<double>{1, 2}));
  const auto opened = make(file);
  const Metadata& metadata = opened.file.metadata();
  for (const auto& [key, value] : file.keys) {
    const Value* kept = metadata.find(key);
    const bool left_out = key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.scores" ||
                          key == "tokenizer.ggml.token_type" || key == "tokenizer.ggml.merges" ||
                          key == "split.count";
    ASSERT_EQ(kept == nullptr, left_out) << key;
    if (left_out) continue;
    ByteWriter again;
    again.write(static_cast<std::uint32_t>(kept->type()));
    again.write_bytes(kept->bytes());
    EXPECT_EQ(again.take(), value) << key;
  }
  EXPECT_EQ(opened.file.header().hidden_size, 128u);
  EXPECT_EQ(opened.file.header().num_layers, 1u);
  EXPECT_EQ(opened.file.header().vocab_size, 3u);
  EXPECT_EQ(opened.file.header().model_name, "A small model");
  EXPECT_EQ(opened.file.header().quant_type, format::QuantType::ternary);
  const auto view = format::TokenizerView::parse(opened.file.tokenizer_section(), 3);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_EQ(view->token(2), "ab");
  ASSERT_TRUE(view->merge(0, 1));
  EXPECT_EQ(view->merge(0, 1)->result, 2u);
}

TEST_F(ConvertTest, RotatedKeysBecomeTheRotationSection) {
  const fs::path source[] = {kModels / "llama_rot128.ptq1_0.gguf"};
  const auto summary = convert::convert(source, target());
  ASSERT_TRUE(summary);
  const auto opened = open_sound(target());
  for (const Entry& entry : opened.file.metadata().entries()) {
    EXPECT_FALSE(entry.key.starts_with("prism")) << entry.key;
  }
  EXPECT_EQ(opened.file.header().quant_type, format::QuantType::ternary_hadamard);
  EXPECT_EQ(opened.file.header().hadamard_order, 7u);
  EXPECT_EQ(summary->rotations.size(), opened.file.rotations().size());
  EXPECT_EQ(summary->rotated_tensors,
            static_cast<std::size_t>(std::count_if(
                opened.file.tensors().begin(), opened.file.tensors().end(),
                [](const auto& record) { return record.input_rotation != format::kNoRotation; })));
}

TEST_F(ConvertTest, NamesAreCutAtACharacter) {
  auto file = small_model();
  file.set("general.name", gguf::text("thirty-one bytes of plain text.\xc3\xa9"));
  EXPECT_EQ(make(file).file.header().model_name, "thirty-one bytes of plain text.");
  file.set("general.name", gguf::text("tab\there \xff!"));
  EXPECT_EQ(make(file).file.header().model_name, "tabhere !");
  file.erase("general.name");
  EXPECT_EQ(make(file).file.header().model_name, "");
}

TEST_F(ConvertTest, SummaryCountsWhatWasWritten) {
  auto file = with_tokenizer();
  file.add("blk.0.ffn_up.weight", gguf::kPQ2_0, {640, 32}, pq2_rows(160, 5));
  const auto t1 = convert_built(file);
  ASSERT_TRUE(t1) << t1.error().message();
  // 40 rows of 1 group are 2 row blocks of 1088 bytes; 32 rows of 5 groups one of 4416.
  EXPECT_EQ(t1->ternary_weights, 128u * 40 + 640 * 32);
  EXPECT_EQ(t1->ternary_bytes, 2u * 1088 + 4416);
  EXPECT_EQ(t1->ternary_bytes_as_t1, t1->ternary_bytes);
  EXPECT_EQ(t1->ternary_bytes_as_t2, 2u * 1088 + 5 * 1088);
  EXPECT_EQ(t1->bits_per_ternary_weight(), 8.0 * (2 * 1088 + 4416) / (128 * 40 + 640 * 32));
  EXPECT_EQ(t1->weights, t1->ternary_weights + 5 + 3 * 128);
  EXPECT_EQ(t1->weight_bytes, t1->ternary_bytes + 32 * 4 + 3 * 4 * 34);
  EXPECT_NEAR(t1->zero_rate(), 1.0 / 3, 0.02);
  ASSERT_EQ(t1->encodings.size(), 3u);
  EXPECT_EQ(t1->encodings[0].encoding, Encoding::f32);
  EXPECT_EQ(t1->encodings[1].encoding, Encoding::q8);
  EXPECT_EQ(t1->encodings[2].encoding, Encoding::t1);
  EXPECT_EQ(t1->encodings[2].tensors, 2u);
  EXPECT_EQ(t1->encodings[2].bytes, t1->ternary_bytes);
  EXPECT_EQ(t1->dropped_merges, 1u);
  EXPECT_TRUE(t1->has_tokenizer);
  EXPECT_EQ(t1->token_probe.state, format::TokenProbeState::not_asked);
  EXPECT_EQ(t1->file_bytes, fs::file_size(target()));

  ConvertOptions options;
  options.encoding = TernaryEncoding::t2;
  const auto t2 = convert_built(file, options);
  ASSERT_TRUE(t2);
  EXPECT_EQ(t2->ternary_bytes, t1->ternary_bytes_as_t2);
  EXPECT_EQ(t2->ternary_zeros, t1->ternary_zeros);
}

TEST_F(ConvertTest, ProgressEndsAtTheWhole) {
  std::uint64_t last = 0, total = 0, calls = 0;
  ConvertOptions options;
  options.progress = [&](const convert::Progress& progress) {
    EXPECT_GE(progress.bytes_done, last);
    last = progress.bytes_done;
    total = progress.bytes_total;
    ++calls;
    return true;
  };
  const auto file = small_model();
  ASSERT_TRUE(convert_built(file, options));
  std::uint64_t bytes = 0;
  for (const auto& tensor : file.tensors) bytes += tensor.data.size();
  EXPECT_EQ(last, bytes);
  EXPECT_EQ(total, bytes);
  EXPECT_GE(calls, 6u);
}

// ---- the token probe ----

format::TokenProbe probe_of(double mean_nll) {
  format::TokenProbe probe;
  probe.state = format::TokenProbeState::present;
  probe.tokens = {0, 1, 2};
  probe.mean_nll = mean_nll;
  probe.greedy = {2, 2};
  return probe;
}

TEST_F(ConvertTest, TokenProbeSeesAWholeFileAndIsKept) {
  ConvertOptions options;
  options.token_probe = [](const fs::path& temporary) -> Result<format::TokenProbe> {
    const auto opened = format::open(temporary);
    EXPECT_TRUE(opened);
    EXPECT_EQ(opened->file.token_probe().state, format::TokenProbeState::empty);
    return probe_of(0.5);
  };
  const auto opened = make(with_tokenizer(), options);
  EXPECT_EQ(opened.file.token_probe().state, format::TokenProbeState::present);
  EXPECT_EQ(opened.file.token_probe().tokens, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(opened.file.token_probe().mean_nll, 0.5);
  EXPECT_EQ(opened.file.token_probe().greedy, (std::vector<std::uint32_t>{2, 2}));
}

TEST_F(ConvertTest, TokenProbeNeedsATokenizer) {
  ConvertOptions options;
  options.token_probe = [](const fs::path&) -> Result<format::TokenProbe> {
    ADD_FAILURE() << "called without a tokenizer";
    return probe_of(0.5);
  };
  EXPECT_EQ(make(small_model(), options).file.token_probe().state,
            format::TokenProbeState::no_tokenizer);
}

TEST_F(ConvertTest, ChanceIsRefusedUnlessAllowed) {
  const double chance = std::log(3.0);
  ConvertOptions options;
  double nll = 0.91 * chance;
  options.token_probe = [&](const fs::path&) -> Result<format::TokenProbe> {
    return probe_of(nll);
  };
  expect_refused(with_tokenizer(), ErrorCode::damaged, {"no better than chance", "0.9 ln 3"},
                 options);
  nll = 0.89 * chance;
  EXPECT_TRUE(convert_built(with_tokenizer(), options));
  nll = 2 * chance;
  options.allow_random = true;
  EXPECT_TRUE(convert_built(with_tokenizer(), options));
}

TEST_F(ConvertTest, AFailingProbeLeavesNothing) {
  ConvertOptions options;
  options.token_probe = [](const fs::path&) -> Result<format::TokenProbe> {
    return Error(ErrorCode::numeric, "layer 0 is not finite");
  };
  expect_refused(with_tokenizer(), ErrorCode::numeric, {"layer 0 is not finite"}, options);
}

// ---- refusals ----

TEST_F(ConvertTest, CancelledAnywhereLeavesNothing) {
  int calls = 0;
  ConvertOptions options;
  options.progress = [&](const convert::Progress&) { return ++calls > 0; };
  ASSERT_TRUE(convert_built(small_model(), options));
  fs::remove(target());
  const int all = calls;
  for (int stop = 1; stop <= all; ++stop) {
    int left = stop;
    options.progress = [&](const convert::Progress&) { return --left > 0; };
    expect_refused(small_model(), ErrorCode::cancelled, {"cancelled"}, options);
  }
}

// Stopped at any moment, even by what no handler sees, nothing is left that opens as a model
// without its rotations.
TEST_F(ConvertTest, NoFileIsEverWithoutItsRotations) {
  const fs::path sources[] = {kModels / "llama_rot128.ptq1_0.gguf"};
  const auto source = importer::open_gguf(sources);
  ASSERT_TRUE(source);
  int looks = 0;
  ConvertOptions options;
  options.progress = [&](const convert::Progress&) {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_FALSE(format::open(entry.path())) << entry.path();
      ++looks;
    }
    return true;
  };
  options.token_probe = [&](const fs::path& temporary) -> Result<format::TokenProbe> {
    const auto opened = format::open(temporary);
    EXPECT_TRUE(opened);
    EXPECT_EQ(opened->file.rotations().size(), source->checkpoint.rotations.size());
    for (const importer::Tensor& tensor : source->checkpoint.tensors) {
      EXPECT_EQ(opened->file.find(tensor.name)->input_rotation, tensor.rotation) << tensor.name;
    }
    return probe_of(0.5);
  };
  ASSERT_TRUE(convert::convert(sources, target(), options));
  EXPECT_GT(looks, 10);
}

TEST_F(ConvertTest, AnOldFileSurvivesAFailure) {
  std::ofstream(target()) << "precious";
  auto file = small_model();
  file.tensor("blk.0.attn_q.weight").data[34 * 39 + 2] = std::byte{0xff};
  EXPECT_FALSE(convert_built(file));
  EXPECT_EQ(read_file(target()), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(ConvertTest, Code3IsNotTernary) {
  auto file = small_model();
  file.tensor("blk.0.attn_q.weight").data[34 * 39 + 2] = std::byte{0x0c};
  expect_refused(file, ErrorCode::unsupported,
                 {"'blk.0.attn_q.weight'", "row 39", "code 3", "not ternary"});
}

TEST_F(ConvertTest, InfiniteValuesAreRefused) {
  auto scale = small_model();
  scale.tensor("blk.0.attn_q.weight").data[34 * 33 + 1] = std::byte{0x7c};
  expect_refused(scale, ErrorCode::damaged, {"'blk.0.attn_q.weight'", "row 33", "infinite"});
  auto dense = small_model();
  dense.tensor("blk.0.attn_norm.weight").data = gguf::f32_bytes({1, 2, NAN, 4, 5});
  expect_refused(dense, ErrorCode::damaged, {"'blk.0.attn_norm.weight'", "row 0"});
  auto embedding = small_model();
  embedding.tensor("token_embd.weight").data[34 * 11 + 1] = std::byte{0xfc};
  expect_refused(embedding, ErrorCode::damaged, {"'token_embd.weight'", "row 2"});
}

TEST_F(ConvertTest, MissingKeysAndTensorsAreNamed) {
  auto file = small_model();
  expect_refused(file.erase("general.architecture"), ErrorCode::damaged,
                 {"'general.architecture' is missing"});
  file = small_model();
  expect_refused(file.erase("llama.embedding_length"), ErrorCode::damaged,
                 {"'llama.embedding_length' is missing"});
  file = small_model();
  expect_refused(file.set("llama.block_count", gguf::u32(0)), ErrorCode::damaged,
                 {"'llama.block_count' is 0"});
  file = small_model();
  file.tensor("token_embd.weight").name = "embedding";
  expect_refused(file, ErrorCode::damaged, {"'token_embd.weight' is missing"});
  file = with_tokenizer();
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "ab", "c"}));
  file.erase("tokenizer.ggml.token_type");
  expect_refused(file, ErrorCode::damaged, {"'token_embd.weight' has 3 rows", "4 tokens"});
}

TEST_F(ConvertTest, TokensOfTheSameBytesAreRefused) {
  auto file = with_tokenizer();
  file.set("tokenizer.ggml.tokens", gguf::texts({"a", "b", "b"}));
  expect_refused(file, ErrorCode::unsupported, {"token 2 'b'", "token 1 has them too"});
}

TEST_F(ConvertTest, GatedDeltaNetWithExpertsIsNotSupported) {
  for (const char* architecture : {"qwen35moe", "qwen3next"}) {
    auto file = small_model();
    file.set("general.architecture", gguf::text(architecture));
    expect_refused(file, ErrorCode::unsupported, {architecture, "not supported"});
  }
}

TEST_F(ConvertTest, TheSourceIsNoTarget) {
  const fs::path source = folder_.path() / "model.gguf";
  fs::copy_file(kModels / "qwen3_q4.gguf", source);
  fs::create_symlink(source, folder_.path() / "link.gguf");
  const std::string before = read_file(source);
  const fs::path sources[] = {source};
  for (const fs::path& same :
       {source, folder_.path() / "." / "model.gguf", folder_.path() / "link.gguf"}) {
    const auto summary = convert::convert(sources, same);
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().code(), ErrorCode::invalid_argument);
    EXPECT_NE(summary.error().message().find("the source itself"), std::string::npos);
  }
  EXPECT_EQ(read_file(source), before);
}

TEST_F(ConvertTest, TheTargetNeedsAFolder) {
  const fs::path sources[] = {kModels / "qwen3_q4.gguf"};
  const fs::path nowhere = folder_.path() / "no" / "out.tsq";
  const auto summary = convert::convert(sources, nowhere);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message().find("out.tsq"), std::string::npos)
      << summary.error().message();
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(ConvertTest, ThreadsChangeNothing) {
  auto file = small_model();
  file.add("blk.0.ffn_up.weight", gguf::kPQ2_0, {640, 500}, pq2_rows(2500, 5));
  ConvertOptions options;
  ASSERT_TRUE(convert_built(file, options));
  const std::string serial = read_file(target());
  for (const int threads : {2, 3}) {
    options.threads = threads;
    ASSERT_TRUE(convert_built(file, options));
    EXPECT_EQ(read_file(target()), serial) << threads;
  }
}
}  // namespace
}  // namespace tsq
