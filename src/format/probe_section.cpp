// The probes section: the token probe in slots of fixed size, then the rotation probes.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <string>

#include "base/byte_reader.h"
#include "base/errorf.h"
#include "format/sections.h"

namespace tsq::format {
namespace {

constexpr std::size_t kTokenProbeBytes = 216;
constexpr std::size_t kRotationProbeBytes = 32;

bool is_state(TokenProbeState state) {
  switch (state) {
    case TokenProbeState::empty:
    case TokenProbeState::present:
    case TokenProbeState::not_asked:
    case TokenProbeState::no_graph:
    case TokenProbeState::no_tokenizer:
      return true;
  }
  return false;
}

// Reads the slots of an array of ids, n of them in use.
Result<std::vector<std::uint32_t>> read_ids(ByteReader& in, const char* field, std::uint32_t n,
                                            std::size_t slots, std::uint32_t vocab_size) {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < slots; ++i) {
    const auto id = in.read<std::uint32_t>();
    if (i >= n && id != 0) return damaged("%s[%zu] is %u, expected 0 from %u on", field, i, id, n);
    if (i < n && id >= vocab_size)
      return damaged("%s[%zu] is %u, expected less than vocab_size %u", field, i, id, vocab_size);
    if (i < n) ids.push_back(id);
  }
  return ids;
}

Result<TokenProbe> read_token_probe(ByteReader& in, std::uint32_t vocab_size) {
  TokenProbe probe;
  probe.state = static_cast<TokenProbeState>(in.read<std::uint32_t>());
  const auto n_tokens = in.read<std::uint32_t>();
  const auto n_greedy = in.read<std::uint32_t>();
  const auto reserved = in.read<std::uint32_t>();
  probe.mean_nll = in.read<double>();
  if (!is_state(probe.state))
    return damaged("state is %u, expected 0 to 4", static_cast<unsigned>(probe.state));
  const bool present = probe.state == TokenProbeState::present;
  if (present ? n_tokens < 2 || n_tokens > TokenProbe::kMaxTokens : n_tokens != 0)
    return damaged("n_tokens is %u, expected %s in state %u", n_tokens, present ? "2 to 32" : "0",
                   static_cast<unsigned>(probe.state));
  if (n_greedy > (present ? TokenProbe::kMaxGreedy : 0))
    return damaged("n_greedy is %u, expected %s in state %u", n_greedy, present ? "0 to 16" : "0",
                   static_cast<unsigned>(probe.state));
  if (reserved != 0) return damaged("reserved field is %u, expected 0", reserved);
  if (!std::isfinite(probe.mean_nll) || probe.mean_nll < 0 || (!present && probe.mean_nll != 0))
    return damaged("mean_nll is %g, expected %s", probe.mean_nll,
                   present ? "a finite number of at least 0" : "0");
  auto tokens = read_ids(in, "tokens", n_tokens, TokenProbe::kMaxTokens, vocab_size);
  if (!tokens) return tokens.error();
  auto greedy = read_ids(in, "greedy", n_greedy, TokenProbe::kMaxGreedy, vocab_size);
  if (!greedy) return greedy.error();
  probe.tokens = std::move(*tokens);
  probe.greedy = std::move(*greedy);
  return probe;
}

Result<void> check_probe(const RotationProbe& probe, std::span<const Rotation> rotations,
                         std::span<const TensorRecord> tensors) {
  if (probe.rotation >= rotations.size())
    return damaged("rotation is %u, the file has %zu", probe.rotation, rotations.size());
  if (probe.tensor >= tensors.size())
    return damaged("tensor is %u, the file has %zu", probe.tensor, tensors.size());
  const TensorRecord& tensor = tensors[probe.tensor];
  if (tensor.input_rotation != probe.rotation)
    return damaged("tensor '%s' does not have input rotation %u", printable(tensor.name).c_str(),
                   probe.rotation);
  if (probe.row >= tensor.rows())
    return damaged("row is %" PRIu64 ", tensor '%s' has %" PRIu64, probe.row,
                   printable(tensor.name).c_str(), tensor.rows());
  if (probe.col >= tensor.cols())
    return damaged("col is %" PRIu64 ", tensor '%s' has %" PRIu64, probe.col,
                   printable(tensor.name).c_str(), tensor.cols());
  if (!std::isfinite(probe.value))
    return damaged("value is %g, expected a finite number", probe.value);
  return {};
}

}  // namespace

Result<Probes> parse_probes(std::span<const std::byte> section, std::uint64_t count,
                            std::uint32_t vocab_size, std::span<const Rotation> rotations,
                            std::span<const TensorRecord> tensors) {
  if (section.size() < kTokenProbeBytes ||
      count != (section.size() - kTokenProbeBytes) / kRotationProbeBytes ||
      (section.size() - kTokenProbeBytes) % kRotationProbeBytes != 0)
    return damaged("probes: the section has %zu bytes, expected 216 + 32 x %" PRIu64,
                   section.size(), count);
  ByteReader in(section);
  Probes probes;
  auto token = read_token_probe(in, vocab_size);
  if (!token) return token.error().at("token probe");
  probes.token = std::move(*token);
  probes.rotation.reserve(
      std::min<std::uint64_t>(count, RotationProbe::kMaxOfRotation * rotations.size()));
  std::vector<std::uint32_t> of_rotation(rotations.size());
  std::uint64_t inputs = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    RotationProbe probe;
    probe.rotation = in.read<std::uint32_t>();
    probe.tensor = in.read<std::uint32_t>();
    probe.row = in.read<std::uint64_t>();
    probe.col = in.read<std::uint64_t>();
    probe.value = in.read<double>();
    if (auto sound = check_probe(probe, rotations, tensors); !sound)
      return sound.error().at(stringf("rotation probe %" PRIu64, i));
    if (++of_rotation[probe.rotation] > RotationProbe::kMaxOfRotation)
      return damaged("rotation probe %" PRIu64 ": rotation %u has more than %u probes", i,
                     probe.rotation, RotationProbe::kMaxOfRotation);
    inputs += rotations[probe.rotation].block;
    if (inputs > RotationProbe::kMaxInputs)
      return damaged("rotation probe %" PRIu64 ": the blocks up to its own have %" PRIu64
                     " inputs, expected at most %" PRIu64,
                     i, inputs, RotationProbe::kMaxInputs);
    probes.rotation.push_back(probe);
  }
  return probes;
}

void write_probes(ByteWriter& out, const TokenProbe& token,
                  std::span<const RotationProbe> rotation) {
  const auto write_ids = [&](std::span<const std::uint32_t> ids, std::size_t slots) {
    for (std::size_t i = 0; i < slots; ++i) out.write(i < ids.size() ? ids[i] : std::uint32_t{0});
  };
  out.write(static_cast<std::uint32_t>(token.state));
  out.write(static_cast<std::uint32_t>(token.tokens.size()));
  out.write(static_cast<std::uint32_t>(token.greedy.size()));
  out.write(std::uint32_t{0});
  out.write(token.mean_nll);
  write_ids(token.tokens, TokenProbe::kMaxTokens);
  write_ids(token.greedy, TokenProbe::kMaxGreedy);
  for (const RotationProbe& probe : rotation) {
    out.write(probe.rotation);
    out.write(probe.tensor);
    out.write(probe.row);
    out.write(probe.col);
    out.write(probe.value);
  }
}

}  // namespace tsq::format
