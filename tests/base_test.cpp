// src/base: hashes, metadata, mapped and output files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/metadata.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "temporary_folder.h"

namespace tsq {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries_in(const std::filesystem::path& folder) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

TEST(Hash, KnownAnswers) {
  // FIPS 180-2's example, and XXH3's documented value for no input.
  EXPECT_EQ(hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(xxh3({}), 0x2d06800538d394c2u);
}

TEST(Hash, PiecesGiveTheSameAsTheWhole) {
  const std::string text(5000, 'x');
  Xxh3Stream stream;
  for (const std::size_t cut : {0u, 1u, 255u, 256u, 4999u}) {
    stream.reset();
    stream.update(bytes_of(text).first(cut));
    stream.update(bytes_of(text).subspan(cut));
    EXPECT_EQ(stream.digest(), xxh3(bytes_of(text)));
  }
}

// --- metadata

// An entry whose value is given as bytes.
void entry(ByteWriter& out, std::string_view key, std::uint32_t type, const ByteWriter& value) {
  out.write<std::uint64_t>(key.size());
  out.write_text(key);
  out.write(type);
  out.write_bytes(value.bytes());
}

template <class... T>
ByteWriter fields(T... values) {
  ByteWriter out;
  (out.write(values), ...);
  return out;
}

std::string parse_error(const ByteWriter& bytes, std::uint64_t count) {
  ByteReader in(bytes.bytes());
  const auto metadata = Metadata::parse(in, count);
  if (metadata) return "no error";
  EXPECT_EQ(metadata.error().code(), ErrorCode::damaged);
  return metadata.error().message();
}

TEST(Metadata, ReadsEveryType) {
  ByteWriter out;
  entry(out, "u8", 0, fields(std::uint8_t{200}));
  entry(out, "i8", 1, fields(std::int8_t{-3}));
  entry(out, "u16", 2, fields(std::uint16_t{60000}));
  entry(out, "i16", 3, fields(std::int16_t{-300}));
  entry(out, "u32", 4, fields(4000000000u));
  entry(out, "i32", 5, fields(-70000));
  entry(out, "f32", 6, fields(0.25f));
  entry(out, "bool", 7, fields(std::uint8_t{1}));
  ByteWriter text;
  text.write<std::uint64_t>(3);
  text.write_text("abc");
  entry(out, "string", 8, text);
  entry(out, "array", 9, fields(5u, std::uint64_t{2}, -1, 7));
  entry(out, "u64", 10, fields(~std::uint64_t{0}));
  entry(out, "i64", 11, fields(std::int64_t{-1} << 40));
  entry(out, "f64", 12, fields(1.5));
  ByteWriter texts = fields(8u, std::uint64_t{2});
  texts.write<std::uint64_t>(0);
  texts.write<std::uint64_t>(1);
  texts.write_text("z");
  entry(out, "strings", 9, texts);
  entry(out, "bools", 9, fields(7u, std::uint64_t{2}, std::uint8_t{1}, std::uint8_t{0}));

  ByteReader in(out.bytes());
  const auto parsed = Metadata::parse(in, 15);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(in.left(), 0u);
  const auto& value = [&](const char* key) -> const Value& { return *parsed->find(key); };
  EXPECT_EQ(value("u8").as_u64(), 200u);
  EXPECT_EQ(value("i8").as_i64(), -3);
  EXPECT_EQ(value("i8").as_u64(), std::nullopt);
  EXPECT_EQ(value("u16").as_u64(), 60000u);
  EXPECT_EQ(value("i16").as_f64(), -300.0);
  EXPECT_EQ(value("u32").as_i64(), 4000000000);
  EXPECT_EQ(value("i32").as_i64(), -70000);
  EXPECT_EQ(value("f32").as_f64(), 0.25);
  EXPECT_EQ(value("f32").as_u64(), std::nullopt);
  EXPECT_EQ(value("bool").as_bool(), true);
  EXPECT_EQ(value("bool").as_u64(), std::nullopt);
  EXPECT_EQ(value("u8").as_bool(), std::nullopt);
  EXPECT_EQ(value("string").as_string(), "abc");
  EXPECT_EQ(value("u8").as_string(), std::nullopt);
  EXPECT_EQ(value("array").count(), 2u);
  EXPECT_EQ(value("array").element_type(), ValueType::i32);
  EXPECT_EQ(value("array").as_i64s(), (std::vector<std::int64_t>{-1, 7}));
  EXPECT_EQ(value("array").as_f64s(), (std::vector<double>{-1, 7}));
  EXPECT_EQ(value("array").as_strings(), std::nullopt);
  EXPECT_EQ(value("u64").as_u64(), ~std::uint64_t{0});
  EXPECT_EQ(value("u64").as_i64(), std::nullopt);
  EXPECT_EQ(value("i64").as_i64(), std::int64_t{-1} << 40);
  EXPECT_EQ(value("f64").as_f64(), 1.5);
  EXPECT_EQ(value("strings").as_strings(), (std::vector<std::string_view>{"", "z"}));
  EXPECT_EQ(value("strings").as_i64s(), std::nullopt);
  EXPECT_EQ(value("bools").as_bools(), (std::vector<bool>{true, false}));
  EXPECT_EQ(value("array").as_bools(), std::nullopt);
  EXPECT_EQ(parsed->find("none"), nullptr);
}

TEST(Metadata, WritesWhatItReads) {
  ByteWriter out;
  write_entry(out, "text", "literal");
  write_entry(out, "number", 7u);
  write_entry(out, "real", 2.5f);
  write_entry(out, "flag", true);
  ByteReader in(out.bytes());
  const auto parsed = Metadata::parse(in, 4);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->find("text")->as_string(), "literal");
  EXPECT_EQ(parsed->find("number")->as_u64(), 7u);
  EXPECT_EQ(parsed->find("real")->as_f64(), 2.5);
  EXPECT_EQ(parsed->find("flag")->as_bool(), true);
  ByteWriter again;
  for (const Entry& e : parsed->entries()) write_entry(again, e.key, e.value);
  EXPECT_TRUE(std::ranges::equal(again.bytes(), out.bytes()));
}

TEST(Metadata, EveryCutIsRefused) {
  ByteWriter out;
  write_entry(out, "text", "literal");
  entry(out, "array", 9, fields(5u, std::uint64_t{2}, -1, 7));
  write_entry(out, "flag", true);
  for (std::size_t cut = 0; cut < out.size(); ++cut) {
    ByteReader in(out.bytes().first(cut));
    const auto parsed = Metadata::parse(in, 3);
    ASSERT_FALSE(parsed) << cut;
    EXPECT_EQ(parsed.error().code(), ErrorCode::damaged);
    EXPECT_NE(parsed.error().message().find("byte"), std::string::npos) << parsed.error().message();
  }
}

TEST(Metadata, RefusesWithThePlaceAndTheReason) {
  constexpr auto kMost = ~std::uint64_t{0};
  EXPECT_EQ(parse_error({}, kMost),
            "18446744073709551615 metadata entries are promised at byte 0, 0 bytes are left");
  {
    ByteWriter out = fields(kMost, 0u, 0u, 0u, 0u);
    EXPECT_EQ(parse_error(out, 1),
              "metadata key at byte 0 has 18446744073709551615 bytes, at most 65535 are allowed");
  }
  {
    ByteWriter out;
    entry(out, "", 4, fields(1u, 1u));
    EXPECT_EQ(parse_error(out, 1), "metadata key at byte 0 is empty");
  }
  {
    ByteWriter out;
    write_entry(out, "twice", 1u);
    write_entry(out, "once", 1u);
    write_entry(out, "twice", 2u);
    EXPECT_EQ(parse_error(out, 3), "metadata key 'twice' stands twice, expected once");
  }
  {
    ByteWriter out;
    entry(out, "k", 13, fields(1u));
    EXPECT_EQ(parse_error(out, 1),
              "metadata key 'k': value type 13 at byte 9 is unknown, expected 0 to 12");
  }
  {
    ByteWriter out;
    entry(out, "k", 9, fields(13u, std::uint64_t{1}, 0u));
    EXPECT_EQ(parse_error(out, 1),
              "metadata key 'k': value type 13 at byte 13 is unknown, expected 0 to 12");
  }
  {
    ByteWriter out;
    entry(out, "k", 7, fields(std::uint8_t{2}, 0u));
    EXPECT_EQ(parse_error(out, 1), "metadata key 'k': boolean at byte 13 is 2, expected 0 or 1");
  }
  {
    ByteWriter out;
    entry(out, "k", 9, fields(7u, std::uint64_t{2}, std::uint8_t{1}, std::uint8_t{3}));
    EXPECT_EQ(parse_error(out, 1), "metadata key 'k': boolean at byte 26 is 3, expected 0 or 1");
  }
  for (const std::uint32_t element : {0u, 5u, 8u, 9u, 12u}) {
    ByteWriter out;
    entry(out, "k", 9, fields(element, kMost));
    EXPECT_EQ(parse_error(out, 1),
              "metadata key 'k': array at byte 13 promises 18446744073709551615 elements, 0 bytes "
              "are left");
  }
  {
    ByteWriter out;
    entry(out, "k", 8, fields(kMost));
    EXPECT_EQ(
        parse_error(out, 1),
        "metadata key 'k': string at byte 13 is cut off: it needs 18446744073709551615 bytes, "
        "0 are left");
  }
}

TEST(Metadata, NestsFourDeepAndNoDeeper) {
  const auto nested = [](int depth) {
    ByteWriter value;
    for (int i = 1; i < depth; ++i) {
      value.write(9u);
      value.write<std::uint64_t>(1);
    }
    value.write(0u);
    value.write<std::uint64_t>(0);
    ByteWriter out;
    entry(out, "k", 9, value);
    return out;
  };
  EXPECT_EQ(parse_error(nested(4), 1), "no error");
  EXPECT_EQ(parse_error(nested(5), 1),
            "metadata key 'k': array at byte 61 is nested deeper than 4");
}

TEST(Metadata, RequireNamesTheKeyAndTheTypes) {
  ByteWriter out;
  write_entry(out, "text", "literal");
  entry(out, "array", 9, fields(5u, std::uint64_t{1}, -1));
  ByteReader in(out.bytes());
  const auto parsed = Metadata::parse(in, 2);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed->require_string("text"), "literal");
  EXPECT_EQ(parsed->require_u64("text").error().message(),
            "metadata key 'text' is string, expected an integer of at least 0");
  EXPECT_EQ(parsed->require_f64("array").error().message(),
            "metadata key 'array' is array of i32, expected a number");
  EXPECT_EQ(parsed->require_string("none").error().message(),
            "metadata key 'none' is missing, expected a string");
}

// --- files

TEST(MappedFile, HoldsTheBytesAndMoves) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "f") << "hello";
  auto map = MappedFile::open(folder.path() / "f");
  ASSERT_TRUE(map);
  const auto* const address = map->bytes().data();
  MappedFile moved = std::move(*map);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
  EXPECT_TRUE(map->bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(MappedFile::open(folder.path() / "none").error().code(), ErrorCode::not_found);
  EXPECT_EQ(MappedFile::open(folder.path()).error().message(), "is a folder, expected a file");
  EXPECT_EQ(MappedFile::open("/dev/null").error().message(), "is not a regular file");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(pipe).error().code(), ErrorCode::io);
  std::ofstream(folder.path() / "empty").flush();
  const auto empty = MappedFile::open(folder.path() / "empty");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
}

TEST(OutputFile, AppearsWhole) {
  const TemporaryFolder folder;
  const auto target = folder.path() / "out";
  std::ofstream(target) << "old";
  auto out = OutputFile::create(target);
  ASSERT_TRUE(out) << out.error().message();
  ASSERT_TRUE(out->write(bytes_of("hello world")));
  ASSERT_TRUE(out->write_at(0, bytes_of("J")));
  ASSERT_TRUE(out->write_at(15, bytes_of("end")));
  EXPECT_EQ(out->size(), 18u);
  EXPECT_EQ(text_of(out->temporary_path()), std::string("Jello world\0\0\0\0end", 18));
  EXPECT_EQ(text_of(target), "old");
  OutputFile moved = std::move(*out);
  ASSERT_TRUE(moved.commit());
  EXPECT_EQ(text_of(target), std::string("Jello world\0\0\0\0end", 18));
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(OutputFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    auto out = OutputFile::create(folder.path() / "out");
    ASSERT_TRUE(out->write(bytes_of("hello")));
    EXPECT_EQ(entries_in(folder.path()), 1u);
  }
  EXPECT_EQ(entries_in(folder.path()), 0u);
  {
    auto a = OutputFile::create(folder.path() / "out");
    auto b = OutputFile::create(folder.path() / "out");  // two at once have two names
    EXPECT_EQ(entries_in(folder.path()), 2u);
    *a = std::move(*b);
  }
  EXPECT_EQ(entries_in(folder.path()), 0u);
}

TEST(OutputFile, RefusesTargetsThatCannotBeReplaced) {
  const TemporaryFolder folder;
  EXPECT_EQ(OutputFile::create(folder.path() / "none" / "out").error().code(),
            ErrorCode::not_found);
  EXPECT_EQ(OutputFile::create(folder.path()).error().message(),
            "exists and is not a regular file");
  EXPECT_EQ(OutputFile::create("/dev/full").error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(OutputFile::create(folder.path() / "x" / "").error().message(),
            "names a folder, expected a file to write");
}

// A temporary name is longer than its target's, and a name has 255 bytes at most.
TEST(OutputFile, TheLongestName) {
  const TemporaryFolder folder;
  std::string two_bytes_each = "n";
  for (int i = 0; i < 127; ++i) two_bytes_each += "\u00e9";
  for (const std::string& name : {std::string(255, 'n'), two_bytes_each}) {
    auto out = OutputFile::create(folder.path() / name);
    ASSERT_TRUE(out) << out.error().message();
    EXPECT_TRUE(utf8_is_valid(out->temporary_path().filename().native()));
    EXPECT_TRUE(out->commit());
  }
  EXPECT_EQ(entries_in(folder.path()), 2u);
  EXPECT_EQ(OutputFile::create(folder.path() / std::string(256, 'n')).error().message(),
            "cannot create a file of this name: File name too long");
}

TEST(OutputFile, WriteErrorsNameTheReasonAndLeaveNothing) {
  const TemporaryFolder folder;
  // In a child, whose limit and signal disposition end with it.
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool refused = false;
    {
      auto out = OutputFile::create(folder.path() / "out");
      const auto written = out->write(bytes_of(std::string(10000, 'x')));
      refused = !written && written.error().code() == ErrorCode::io &&
                written.error().message() ==
                    "cannot write at byte 4096: the file would exceed the size limit";
    }
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(entries_in(folder.path()), 0u);
}

TEST(OutputFile, ASignalHandlerCanRemoveWhatIsLeft) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGTERM, [](int) {
      remove_temporaries();
      _exit(7);
    });
    auto done = OutputFile::create(folder.path() / "done");
    if (!done->commit()) _exit(1);
    auto out = OutputFile::create(folder.path() / "out");
    std::raise(SIGTERM);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(entries_in(folder.path()), 1u);  // the committed one
}

}  // namespace
}  // namespace tsq
