// The logits of a run, for others to be held against: llama.cpp's file (--kl-divergence-base), so
// that the two programs can be compared with each other. Little-endian:
//
//   8 bytes                 "_logits_"
//   i32 x 3                 tokens of a chunk c, vocabulary v, chunks n
//   i32 x c n               the text's tokens, each chunk before its first became BOS
//   row x (c - 1 - c/2) n   of each token that is scored (from c/2 on), the log-probabilities:
//     f32 scale, f32 least; u16 x v codes: log p = scale * code + least; one more u16 if v is odd
//
// What is more than 16 below the largest logit is stored as if it were 16 below it. tsq adds what
// llama.cpp does not read:
//
//   f64 x rows              the negative log-likelihood of each row's next token, unrounded
//   8 bytes, u64            "tsq-xxh3", and the XXH3-64 of all before
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "tsq/tokenizer.h"

namespace tsq::tool {

class LogitsWriter {
 public:
  // Messages hold the path, here and below.
  static Result<LogitsWriter> create(const std::filesystem::path& path, std::size_t chunk,
                                     std::size_t vocab, std::span<const Token> tokens);
  // nll: of the token that follows.
  Result<void> add(std::span<const float> logits, double nll);
  Result<void> commit();

 private:
  LogitsWriter(std::filesystem::path path, OutputFile out)
      : path_(std::move(path)), out_(std::move(out)) {}
  Result<void> write(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  OutputFile out_;
  Xxh3Stream digest_;
  std::vector<double> nlls_;
};

// Whether the file begins as one of saved logits does.
bool is_logits_file(const std::filesystem::path& path);

class LogitsFile {
 public:
  struct Row {
    float scale, least;
    std::span<const std::uint16_t> codes;
    std::optional<double> nll;  // of the next token; without it, its log_probability() is near

    double log_probability(std::size_t token) const {
      return static_cast<double>(scale) * codes[token] + static_cast<double>(least);
    }
  };

  // damaged: where, found, expected; the digest is compared where there is one.
  static Result<LogitsFile> open(const std::filesystem::path& path);
  // Whether it is about this text under this vocabulary: invalid_argument says what differs.
  Result<void> check(std::size_t chunk, std::size_t vocab, std::span<const Token> tokens) const;

  std::size_t chunks() const { return chunks_; }
  std::size_t rows_per_chunk() const { return chunk_ - 1 - chunk_ / 2; }
  Row row(std::size_t index) const;  // in the order they were written

 private:
  LogitsFile(std::filesystem::path path, MappedFile map)
      : path_(std::move(path)), map_(std::move(map)) {}
  Result<void> parse();

  std::filesystem::path path_;
  MappedFile map_;
  std::size_t chunk_ = 0, vocab_ = 0, chunks_ = 0;
  std::span<const std::byte> tokens_, rows_, nlls_;  // the last one may be empty
};

}  // namespace tsq::tool
