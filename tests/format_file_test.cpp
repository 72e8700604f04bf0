// Whole files: what the writer writes the reader reads; cuts, digests, and outputs that fail.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "base/hash.h"
#include "base/metadata.h"
#include "format/probes.h"
#include "format/reader.h"
#include "format_files.h"
#include "temporary_folder.h"

namespace tsq::format {
namespace {

std::size_t entries_in(const std::filesystem::path& folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

std::string error_of(const Result<File>& file) {
  return file ? "no error" : file.error().message();
}

TEST(File, HoldsWhatWasWritten) {
  const Bytes& bytes = sample_file();
  const auto parsed = File::parse(bytes.span());
  ASSERT_TRUE(parsed) << error_of(parsed);
  const FileContents contents = sample_contents();
  const Header& header = parsed->header();
  EXPECT_EQ(header.hidden_size, 160u);
  EXPECT_EQ(header.num_layers, 1u);
  EXPECT_EQ(header.vocab_size, 6u);
  EXPECT_EQ(header.model_name, "Sample");
  EXPECT_EQ(header.quant_type, QuantType::mixed);  // ffn_up is not rotated, the others are
  EXPECT_EQ(header.hadamard_order, 5u);            // 33 x 160 weights against 3 x 48 with 16
  EXPECT_EQ(header.critical_features, 0u);
  EXPECT_EQ(parsed->file_bytes(), bytes.size());
  EXPECT_EQ(parsed->metadata().entries().size(), 5u);
  EXPECT_EQ(parsed->metadata().find("test.scale")->as_f64(), 0.5);
  ASSERT_EQ(parsed->rotations().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(parsed->rotations()[i].block, contents.rotations[i].block);
    EXPECT_EQ(parsed->rotations()[i].width, contents.rotations[i].width);
    EXPECT_EQ(parsed->rotations()[i].signs, contents.rotations[i].signs);
  }
  EXPECT_TRUE(std::ranges::equal(parsed->tokenizer_section(), contents.tokenizer));
  EXPECT_EQ(parsed->token_probe().state, TokenProbeState::present);
  EXPECT_EQ(parsed->token_probe().tokens, sample_token_probe().tokens);
  EXPECT_EQ(parsed->token_probe().greedy, sample_token_probe().greedy);
  EXPECT_EQ(parsed->token_probe().mean_nll, 1.25);
  ASSERT_EQ(parsed->rotation_probes().size(), 2u);
  EXPECT_EQ(parsed->rotation_probes()[0].row, 32u);
  EXPECT_EQ(parsed->rotation_probes()[0].col, 77u);

  ASSERT_EQ(parsed->tensors().size(), kSampleTensors);
  // Bodies as FORMAT.md sizes them: 6 rows of 5 blocks of 20; 160 floats; 2 x 2 x 1088; one group
  // of t1; 4416 + 1088; 32 halves; 6 rows of 32; 2 rows of 2 blocks.
  const std::uint64_t sizes[] = {600, 640, 4352, 1088, 5504, 64, 384, 136};
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < kSampleTensors; ++i) {
    const TensorRecord& tensor = parsed->tensors()[i];
    const TensorRecord& given = contents.tensors[i];
    EXPECT_EQ(tensor.name, given.name);
    EXPECT_EQ(tensor.encoding, given.encoding);
    EXPECT_EQ(tensor.flags, given.flags);
    EXPECT_EQ(tensor.n_dims, given.n_dims);
    EXPECT_EQ(tensor.dims, given.dims);
    EXPECT_EQ(tensor.scale_kind, given.scale_kind);
    EXPECT_EQ(tensor.activation_quant, given.activation_quant);
    EXPECT_EQ(tensor.input_rotation, given.input_rotation);
    EXPECT_EQ(tensor.body_bytes, sizes[i]) << tensor.name;
    EXPECT_EQ(tensor.body_offset, start) << tensor.name;
    start += (sizes[i] + 63) / 64 * 64;
    EXPECT_EQ(parsed->body(tensor).size(), sizes[i]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(parsed->body(tensor).data()) % 64, 0u);
    EXPECT_TRUE(parsed->scales(tensor).empty());
    EXPECT_EQ(tensor.digest, xxh3(parsed->body(tensor)));
    EXPECT_EQ(parsed->find(tensor.name), &tensor);
  }
  EXPECT_EQ(parsed->data().size(), start);
  EXPECT_EQ(bytes.size(), 65536 + start);
  EXPECT_EQ(parsed->find("none"), nullptr);
  EXPECT_TRUE(check_rotation_probes(*parsed));
}

TEST(File, OpensFromDiskAndNamesThePathOnce) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.tsq";
  write_bytes(path, sample_file().span());
  const auto opened = open(path);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->file.tensors().size(), kSampleTensors);
  write_bytes(path, sample_file().span().first(500));
  EXPECT_EQ(open(path).error().message(),
            path.string() + ": header: the file has 500 bytes, a header has 1024");
  const auto none = open(folder.path() / "none.tsq");
  EXPECT_EQ(none.error().code(), ErrorCode::not_found);
  EXPECT_EQ(none.error().message(),
            (folder.path() / "none.tsq").string() + ": cannot open: No such file or directory");
}

TEST(File, RefusesBytesThatAreNotAligned) {
  Bytes bytes(sample_file().size() + 64);
  const auto shifted = bytes.span().subspan(8, sample_file().size());
  std::memcpy(shifted.data(), sample_file().data(), shifted.size());
  EXPECT_EQ(File::parse(shifted).error().code(), ErrorCode::invalid_argument);
}

TEST(File, EveryCutIsRefused) {
  const Bytes& bytes = sample_file();
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const auto file = File::parse(bytes.span().first(cut));
    ASSERT_FALSE(file) << cut;
    ASSERT_EQ(file.error().code(), ErrorCode::damaged) << cut;
    const std::string found = "the file has " + std::to_string(cut);
    ASSERT_EQ(file.error().message(),
              cut < 1024 ? "header: " + found + " bytes, a header has 1024"
                         : "header: file_bytes is " + std::to_string(bytes.size()) + ", " + found);
  }
}

// The same cuts with a header that agrees: what the file lacks is missed where it should be.
TEST(File, EveryCutIsRefusedUnderARightHeader) {
  const Bytes& bytes = sample_file();
  for (std::size_t cut = 1024; cut < bytes.size(); cut += cut < 6000 || cut > 65000 ? 1 : 997) {
    Bytes part = copy_of(bytes.span().first(cut));
    put<std::uint64_t>(part, 64, cut);
    const auto file = File::parse(part.span(), {.check_digests = false});
    ASSERT_FALSE(file) << cut;
    ASSERT_EQ(file.error().code(), ErrorCode::damaged) << cut;
    ASSERT_EQ(file.error().message().find("section directory: entry "), 0u)
        << cut << ": " << file.error().message();
  }
}

TEST(File, LongerThanItsHeaderSaysIsRefused) {
  Bytes bytes(sample_file().size() + 1);
  std::memcpy(bytes.data(), sample_file().data(), sample_file().size());
  EXPECT_EQ(error_of(File::parse(bytes.span())),
            "header: file_bytes is " + std::to_string(bytes.size() - 1) + ", the file has " +
                std::to_string(bytes.size()));
}

TEST(Digests, OneBitOfTheHeaderIsNoticed) {
  for (std::size_t at = 8; at < 1024; ++at) {  // magic and version have their own messages
    Bytes bytes = copy_of(sample_file().span());
    bytes[at] ^= std::byte{0x10};
    ASSERT_EQ(error_of(File::parse(bytes.span())).find("header: SHA-256 of bytes 0-991 is "), 0u)
        << at;
  }
}

TEST(Digests, OneBitOfASectionIsNoticed) {
  const char* const names[] = {"metadata", "rotations", "tensor directory", "tokenizer", "probes"};
  for (std::size_t k = 1; k < 6; ++k) {
    const std::size_t first = section_at(sample_file(), k);
    const std::size_t n = section_bytes(sample_file(), k);
    for (std::size_t i = 0; i < n; i += 1 + n / 40) {
      Bytes bytes = copy_of(sample_file().span());
      bytes[first + i] ^= std::byte{0x01};
      const auto file = File::parse(bytes.span());
      ASSERT_FALSE(file);
      EXPECT_EQ(file.error().code(), ErrorCode::damaged);
      EXPECT_EQ(file.error().message().find(std::string(names[k - 1]) + ": SHA-256 is "), 0u)
          << file.error().message();
    }
  }
}

TEST(Digests, TheDataSectionIsNotReadAtOpen) {
  Bytes bytes = copy_of(sample_file().span());
  for (std::size_t at = 65536; at < bytes.size(); ++at) bytes[at] = std::byte{0xff};
  EXPECT_TRUE(File::parse(bytes.span()));
}

// --- rotation probes

// An example worked out by another program: block 4, width 8.
TEST(RotationProbes, UnrotatedWeightIsTheDefinition) {
  const Rotation rotation{.block = 4, .width = 8, .signs = {0b10010110}};
  const float stored[] = {1.5f, 0.5f, -0.5f, 0.5f, -0.5f, -0.5f, 1.5f, -0.5f};
  const double expected[] = {1, 0, -1, 1, 0, 1, -1, 1};
  for (std::size_t col = 0; col < 8; ++col)
    EXPECT_EQ(unrotated_weight(stored, rotation, col), expected[col]) << col;
}

TEST(RotationProbes, NoticeEveryWrongPartOfTheRotation) {
  const std::size_t rotations = section_at(sample_file(), 2);
  const std::size_t probes = section_at(sample_file(), 5) + 216;
  const auto check = [](Bytes& bytes) -> std::string {
    sign(bytes);
    const auto file = File::parse(bytes.span());
    if (!file) return file.error().message();
    const auto checked = check_rotation_probes(*file);
    if (checked) return "no error";
    EXPECT_EQ(checked.error().code(), ErrorCode::damaged);
    return checked.error().message();
  };
  Bytes sound = copy_of(sample_file().span());
  EXPECT_EQ(check(sound), "no error");
  {
    Bytes bytes = copy_of(sample_file().span());  // the sign of input 77
    put<std::uint32_t>(bytes, rotations + 16 + 8,
                       get<std::uint32_t>(bytes, rotations + 24) ^ 0x2000);
    EXPECT_EQ(check(bytes).find("rotation 0, tensor 'blk.0.attn_q.weight', row 32, col 77: "
                                "un-rotated weight is "),
              0u);
  }
  {
    Bytes bytes = copy_of(sample_file().span());  // the block: 16 instead of 32
    put<std::uint32_t>(bytes, rotations, 16);
    put<std::uint32_t>(bytes, 24, 4);  // and the header's order, which follows from it
    EXPECT_EQ(check(bytes).find("rotation 0, tensor 'blk.0.attn_q.weight'"), 0u) << check(bytes);
  }
  {
    Bytes bytes = copy_of(sample_file().span());  // the probe's value, by 10^-8
    put(bytes, probes + 32 + 24, get<double>(bytes, probes + 32 + 24) + 1e-8);
    EXPECT_EQ(check(bytes).find("rotation 1, tensor 'blk.0.ffn_down.weight', row 1, col 20"), 0u)
        << check(bytes);
  }
  {
    Bytes bytes = copy_of(sample_file().span());  // a weight's scale that is not a number
    const std::size_t body = 65536 + get<std::uint64_t>(bytes, record_at(bytes, kQ, 80));
    put<std::uint16_t>(bytes, body + 2176, 0x7e00);  // row 32: block 1, group 0
    EXPECT_NE(check(bytes).find("un-rotated weight is nan"), std::string::npos);
  }
}

// --- the writer

std::string create_error(FileContents contents, ErrorCode expected = ErrorCode::invalid_argument) {
  const TemporaryFolder folder;
  const auto writer = Writer::create(folder.path() / "out.tsq", std::move(contents));
  EXPECT_EQ(entries_in(folder.path()), writer ? 1u : 0u);
  if (writer) return "no error";
  EXPECT_EQ(writer.error().code(), expected);
  return writer.error().message();
}

TEST(Writer, RefusesWhatTheReaderWouldRefuse) {
  EXPECT_EQ(create_error(sample_contents()), "no error");
  FileContents c = sample_contents();
  c.tensors[kUp].name = "half";
  EXPECT_EQ(create_error(c), "tensor 'half' stands twice, expected once");
  c = sample_contents();
  c.tensors[kUp].name = "";
  EXPECT_EQ(create_error(c), "tensor record 4: name_bytes is 0, expected 1 to 1024");
  c = sample_contents();
  c.tensors[kUp].dims[1] = 0;
  EXPECT_EQ(create_error(c), "tensor 'blk.0.ffn_up.weight': dims[1] is 0, expected at least 1");
  c = sample_contents();
  c.tensors[kUp].dims[1] = std::uint64_t{1} << 54;
  EXPECT_EQ(create_error(c),
            "tensor 'blk.0.ffn_up.weight': the product of dims 700 x 18014398509481984 x 1 x 1 is "
            "not below 2^63");
  c = sample_contents();
  c.tensors[kF16].dims = {std::uint64_t{1} << 61, 1, 1, 1};
  EXPECT_EQ(create_error(c),
            "tensor 'half': dims of 1 rows x 2305843009213693952 inputs in f16 exceed 2^64 bytes");
  c = sample_contents();
  c.tensors[kF16].dims = c.tensors[kBf16].dims = {std::uint64_t{1} << 59, 15, 1, 1};
  EXPECT_EQ(create_error(c), "tensor 'brain': the data section exceeds 2^64 bytes");
  c = sample_contents();
  c.tensors[kQ].input_rotation = 2;
  EXPECT_EQ(create_error(c),
            "tensor 'blk.0.attn_q.weight': input_rotation is 2, the file has 2 rotations");
  c = sample_contents();
  c.rotations[0].signs.pop_back();
  EXPECT_EQ(create_error(c),
            "rotation 0: 4 words of signs were given, expected 5 for a width of 160");
  c = sample_contents();
  c.rotation_probes.pop_back();
  EXPECT_EQ(create_error(c), "rotation 1 has no rotation probe, expected at least one");
  c = sample_contents();
  c.header.model_name = "a\nb";
  EXPECT_EQ(create_error(c),
            "header: model_name 'a\\x0ab' is not UTF-8 without control characters");
  c = sample_contents();
  c.tensors[kUp].storage = StorageEncoding::mask;
  EXPECT_EQ(create_error(c, ErrorCode::unsupported),
            "tensor 'blk.0.ffn_up.weight': needs 'mask storage' (feature bit 8), which this build "
            "lacks");
}

TEST(Writer, RefusesKeysOfOtherSections) {
  FileContents c = sample_contents();
  ByteWriter metadata;
  write_entry(metadata, "tokenizer.ggml.token_type", "x");
  c.metadata = metadata.take();
  c.n_metadata = 1;
  EXPECT_EQ(create_error(c),
            "metadata key 'tokenizer.ggml.token_type' is not allowed: its content belongs in the "
            "tokenizer section");
}

TEST(Writer, CutsALongNameAtACharacter) {
  FileContents c = sample_contents();
  c.header.model_name = "0123456789012345678901234567890\xc3\xa9";  // the last one does not fit
  const Bytes bytes = make_file(std::move(c));
  const auto file = File::parse(bytes.span());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->header().model_name, "0123456789012345678901234567890");
  c = sample_contents();
  c.header.model_name = "012345678901234567890123456789\xc3\xa9 and more";
  const Bytes fits = make_file(std::move(c));
  EXPECT_EQ(File::parse(fits.span())->header().model_name,
            "012345678901234567890123456789\xc3\xa9");
}

TEST(Writer, HoldsTheCallerToItsRecords) {
  const TemporaryFolder folder;
  auto writer = Writer::create(folder.path() / "out.tsq", sample_contents());
  ASSERT_TRUE(writer);
  std::vector<std::byte> bytes(601);
  const auto message = [](const Result<void>& result) {
    return result ? "no error" : result.error().message();
  };
  EXPECT_EQ(message(writer->append(bytes)),
            "tensor 'token_embd.weight': more than its 600 body bytes were added");
  EXPECT_EQ(message(writer->append(std::span(bytes).first(599))), "no error");
  EXPECT_EQ(
      message(writer->end_tensor({}, 0)),
      "tensor 'token_embd.weight': 599 body and 0 scale bytes were added, expected 600 and 0");
  EXPECT_EQ(message(writer->append(std::span(bytes).first(1))), "no error");
  const float scale = 1;
  EXPECT_EQ(
      message(writer->end_tensor({&scale, 1}, 0)),
      "tensor 'token_embd.weight': 600 body and 4 scale bytes were added, expected 600 and 0");
  EXPECT_EQ(message(writer->end_tensor({}, 0)), "no error");
  EXPECT_EQ(message(writer->seal({})), "tensor 'blk.0.attn_norm.weight' was not written");

  auto whole = Writer::create(folder.path() / "whole.tsq", sample_contents());
  ASSERT_TRUE(write_tensors(*whole));
  EXPECT_EQ(message(whole->append(bytes)), "a tensor was added behind the last one");
  EXPECT_EQ(message(whole->end_tensor({}, 0)), "a tensor was ended behind the last one");
  TokenProbe probe = sample_token_probe();
  probe.tokens[1] = 6;
  EXPECT_EQ(message(whole->seal(probe)),
            "token probe: tokens[1] is 6, expected less than vocab_size 6");
  EXPECT_EQ(message(whole->seal(sample_token_probe())), "no error");
}

TEST(Writer, SealsAgainWithAnotherProbe) {
  const TemporaryFolder folder;
  auto writer = Writer::create(folder.path() / "out.tsq", sample_contents());
  ASSERT_TRUE(write_tensors(*writer));
  ASSERT_TRUE(writer->seal({}));
  {
    const auto opened = open(writer->temporary_path());
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(opened->file.token_probe().state, TokenProbeState::empty);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.tsq"));
  ASSERT_TRUE(writer->seal(sample_token_probe()));
  ASSERT_TRUE(writer->commit());
  const auto opened = open(folder.path() / "out.tsq");
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->file.token_probe().tokens, sample_token_probe().tokens);
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(Writer, LeavesNothingIfItIsNotCommitted) {
  const TemporaryFolder folder;
  {
    auto writer = Writer::create(folder.path() / "out.tsq", sample_contents());
    ASSERT_TRUE(write_tensors(*writer));
    ASSERT_TRUE(writer->seal({}));
  }
  EXPECT_EQ(entries_in(folder.path()), 0u);
}

TEST(Writer, NamesTheTargetInErrorsOfTheDisk) {
  const TemporaryFolder folder;
  const auto target = folder.path() / "none" / "out.tsq";
  EXPECT_EQ(Writer::create(target, sample_contents()).error().message(),
            target.string() + ": cannot create a file in its folder: No such file or directory");
  EXPECT_EQ(Writer::create("/dev/full", sample_contents()).error().message(),
            "/dev/full: exists and is not a regular file");

  // A limit on the size of files stands for a full disk, in a child that it ends with.
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{66000, 66000};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool named = false;
    {
      auto writer = Writer::create(folder.path() / "out.tsq", sample_contents());
      const auto written = write_tensors(*writer);
      named = !written && written.error().code() == ErrorCode::io &&
              written.error().message() ==
                  (folder.path() / "out.tsq").string() +
                      ": cannot write at byte 66000: the file would exceed the size limit";
    }
    _exit(named ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(entries_in(folder.path()), 0u);
}

// --- fields that follow from the tensors

TEST(DerivedFields, FollowFromTheTensors) {
  // A name and its encoding, input size, rows, rotation; rotations of block 16 and 32 for 160.
  struct Matrix {
    Encoding encoding;
    std::uint64_t rows;
    std::uint32_t rotation;
  };
  const auto header_of = [](std::vector<Matrix> matrices, std::vector<Rotation> rotations) {
    FileContents contents = sample_contents();
    contents.tensors.clear();
    contents.rotation_probes.clear();
    contents.rotations = std::move(rotations);
    for (const Matrix& m : matrices) {
      TensorRecord tensor = sample_contents().tensors[kQ];
      const bool ternary = is_ternary(m.encoding);
      tensor.name = std::to_string(contents.tensors.size());
      tensor.encoding = m.encoding;
      tensor.dims[1] = m.rows;
      tensor.input_rotation = m.rotation;
      if (!ternary) {
        tensor.scale_kind = ScaleKind::none;
        tensor.activation_quant = ActivationQuant::none;
      }
      if (m.rotation != kNoRotation)
        contents.rotation_probes.push_back(
            {.rotation = m.rotation,
             .tensor = static_cast<std::uint32_t>(contents.tensors.size())});
      contents.tensors.push_back(tensor);
    }
    const Bytes bytes = make_file(std::move(contents));
    const auto file = File::parse(bytes.span());
    EXPECT_TRUE(file) << error_of(file);
    return std::pair(file->header().quant_type, file->header().hadamard_order);
  };
  const Rotation r16{.block = 16, .width = 160, .signs = {}},
      r32{.block = 32, .width = 160, .signs = {}};
  const Rotation r1{.block = 1, .width = 160, .signs = {1, 2, 3, 4, 5}};
  constexpr auto kNone = kNoRotation;
  using enum Encoding;
  EXPECT_EQ(header_of({{q8, 9, kNone}}, {}), std::pair(QuantType::dense, 0u));
  EXPECT_EQ(header_of({{q8, 9, 0}}, {r16}), std::pair(QuantType::dense, 0u));
  EXPECT_EQ(header_of({{q8, 9, kNone}, {t2, 1, kNone}}, {}), std::pair(QuantType::ternary, 0u));
  EXPECT_EQ(header_of({{q8, 9, kNone}, {t2, 1, 0}}, {r16}),
            std::pair(QuantType::ternary_hadamard, 4u));
  EXPECT_EQ(header_of({{t1, 9, kNone}, {t2, 1, 0}}, {r16}), std::pair(QuantType::mixed, 4u));
  EXPECT_EQ(header_of({{t1, 9, 1}, {t2, 10, 0}}, {r16, r32}),
            std::pair(QuantType::ternary_hadamard, 4u));
  EXPECT_EQ(header_of({{t1, 9, 1}, {t2, 9, 0}}, {r32, r16}),  // a tie goes to the larger block
            std::pair(QuantType::ternary_hadamard, 5u));
  EXPECT_EQ(header_of({{t1, 5, 1}, {t2, 5, 1}, {t2, 9, 0}}, {r32, r16}),
            std::pair(QuantType::ternary_hadamard, 4u));
  EXPECT_EQ(header_of({{t1, 9, 0}}, {r1}), std::pair(QuantType::ternary_hadamard, 0u));
  EXPECT_EQ(header_of({{q8, 9, kNone}, {s34, 1, kNone}}, {}),
            std::pair(QuantType::sparse_ternary, 0u));
  EXPECT_EQ(header_of({{s34, 9, 0}}, {r16}), std::pair(QuantType::sparse_ternary, 4u));
  EXPECT_EQ(header_of({{s34, 9, 0}, {t1, 1, 0}}, {r16}), std::pair(QuantType::mixed, 4u));
  EXPECT_EQ(header_of({}, {}), std::pair(QuantType::dense, 0u));
}

}  // namespace
}  // namespace tsq::format
