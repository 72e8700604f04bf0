#include "logits_file.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/checked.h"
#include "base/errorf.h"

namespace tsq::tool {
namespace {

constexpr std::string_view kMagic = "_logits_", kTrailer = "tsq-xxh3";
constexpr double kRange = 16;  // of log-probabilities

std::size_t row_bytes(std::size_t vocab) { return 2 * sizeof(float) + 2 * round_up(vocab, 2); }

}  // namespace

Result<LogitsWriter> LogitsWriter::create(const std::filesystem::path& path, std::size_t chunk,
                                          std::size_t vocab, std::span<const Token> tokens) {
  auto out = OutputFile::create(path);
  if (!out) return out.error().at(path.string());
  LogitsWriter writer(path, std::move(*out));
  ByteWriter head;
  head.write_text(kMagic);
  head.write(static_cast<std::int32_t>(chunk));
  head.write(static_cast<std::int32_t>(vocab));
  head.write(static_cast<std::int32_t>(tokens.size() / chunk));
  head.write_bytes(std::as_bytes(tokens));
  if (const auto done = writer.write(head.bytes()); !done) return done.error();
  return writer;
}

bool is_logits_file(const std::filesystem::path& path) {
  std::string start(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kMagic;
}

Result<void> LogitsWriter::write(std::span<const std::byte> bytes) {
  digest_.update(bytes);
  if (const auto done = out_.write(bytes); !done) return done.error().at(path_.string());
  return {};
}

Result<void> LogitsWriter::add(std::span<const float> logits, double nll) {
  nlls_.push_back(nll);
  const auto [low, high] = std::ranges::minmax(logits);
  const double most = static_cast<double>(high);
  const double least = std::max(static_cast<double>(low), most - kRange);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double scale = static_cast<double>(static_cast<float>((most - least) / 65535));
  ByteWriter row;
  row.write(static_cast<float>(scale));
  row.write(static_cast<float>(least - most - std::log(sum)));
  for (const float logit : logits) {
    const double above = scale > 0 ? (static_cast<double>(logit) - least) / scale : 0;
    row.write(static_cast<std::uint16_t>(std::lround(std::clamp(above, 0.0, 65535.0))));
  }
  row.pad_to(4);
  return write(row.bytes());
}

Result<void> LogitsWriter::commit() {
  if (const auto done = write(std::as_bytes(std::span(nlls_))); !done) return done;
  ByteWriter trailer;
  trailer.write_text(kTrailer);
  trailer.write(digest_.digest());
  if (const auto done = write(trailer.bytes()); !done) return done;
  if (const auto done = out_.commit(); !done) return done.error().at(path_.string());
  return {};
}

Result<LogitsFile> LogitsFile::open(const std::filesystem::path& path) {
  auto map = MappedFile::open(path);
  if (!map) return map.error().at(path.string());
  LogitsFile file(path, std::move(*map));
  if (const auto parsed = file.parse(); !parsed) return parsed.error().at(path.string());
  return file;
}

Result<void> LogitsFile::parse() {
  const std::span<const std::byte> bytes = map_.bytes();
  ByteReader in(bytes);
  if (in.take_text(kMagic.size()) != kMagic)
    return errorf(ErrorCode::damaged, "does not start with '%s': no file of saved logits",
                  kMagic.data());
  const auto chunk = in.read<std::int32_t>(), vocab = in.read<std::int32_t>(),
             chunks = in.read<std::int32_t>();
  if (!in.ok() || chunk < 4 || vocab < 1 || chunks < 1)
    return errorf(ErrorCode::damaged,
                  "%d chunks of %d tokens over a vocabulary of %d, expected 1 or more of 4 or more "
                  "over 1 or more",
                  chunks, chunk, vocab);
  chunk_ = static_cast<std::size_t>(chunk);
  vocab_ = static_cast<std::size_t>(vocab);
  chunks_ = static_cast<std::size_t>(chunks);
  // Below 2^31 each: only the product of three can wrap.
  const std::size_t n_rows = chunks_ * rows_per_chunk();
  const auto row_total = checked_mul(n_rows, row_bytes(vocab_));
  const auto token_bytes = chunks_ * chunk_ * sizeof(Token);
  const auto total = row_total ? checked_add(*row_total, in.offset() + token_bytes) : row_total;
  // What tsq adds cannot wrap: it is less than the rows.
  const std::size_t added = n_rows * sizeof(double) + kTrailer.size() + sizeof(std::uint64_t);
  if (!total || bytes.size() < *total || (bytes.size() != *total && bytes.size() - *total != added))
    return errorf(ErrorCode::damaged,
                  "%zu bytes, expected %" PRIu64
                  " for %d chunks of %d tokens over a vocabulary "
                  "of %d",
                  bytes.size(), total.value_or(UINT64_MAX), chunks, chunk, vocab);
  tokens_ = in.take(token_bytes);
  rows_ = in.take(*row_total);
  if (in.left() == 0) return {};  // llama.cpp's own
  nlls_ = in.take(n_rows * sizeof(double));
  const std::uint64_t found = xxh3(bytes.first(in.offset()));
  const bool known = in.take_text(kTrailer.size()) == kTrailer;
  const auto expected = in.read<std::uint64_t>();
  if (known && found == expected) return {};
  return errorf(ErrorCode::damaged, "XXH3-64 is %016" PRIx64 ", expected %016" PRIx64, found,
                expected);
}

Result<void> LogitsFile::check(std::size_t chunk, std::size_t vocab,
                               std::span<const Token> tokens) const {
  const auto differs = [&](Error error) { return error.at(path_.string()); };
  if (chunk != chunk_)
    return differs(errorf(ErrorCode::invalid_argument,
                          "its chunks have %zu tokens, those of this run %zu: give -c %zu", chunk_,
                          chunk, chunk_));
  if (vocab != vocab_)
    return differs(errorf(ErrorCode::invalid_argument,
                          "its vocabulary has %zu tokens, the model's %zu: not comparable", vocab_,
                          vocab));
  for (std::size_t i = 0; i < chunks_ * chunk_; ++i) {
    Token expected;
    std::memcpy(&expected, tokens_.data() + i * sizeof expected, sizeof expected);
    if (i >= tokens.size())
      return differs(errorf(ErrorCode::invalid_argument,
                            "it holds %zu chunks, the text has %zu: another text?", chunks_,
                            tokens.size() / chunk_));
    if (tokens[i] != expected)
      return differs(errorf(ErrorCode::invalid_argument,
                            "its token %zu is %d, the text's %d: another text or tokenizer", i,
                            expected, tokens[i]));
  }
  return {};
}

LogitsFile::Row LogitsFile::row(std::size_t index) const {
  // The header, tokens and rows are multiples of 4 bytes.
  const std::byte* const at = rows_.data() + index * row_bytes(vocab_);
  const auto* const head = reinterpret_cast<const float*>(at);
  Row row{head[0], head[1], {reinterpret_cast<const std::uint16_t*>(head + 2), vocab_}, {}};
  if (!nlls_.empty())
    std::memcpy(&row.nll.emplace(), nlls_.data() + index * sizeof(double), sizeof(double));
  return row;
}

}  // namespace tsq::tool
