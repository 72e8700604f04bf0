#include "engine/repack.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <system_error>

#include "backend/kernel_views.h"
#include "base/checked.h"
#include "base/errorf.h"
#include "base/thread_pool.h"
#include "kernels/repack.h"

namespace tsq {
namespace {

using kernels::PackedForm;

// Of what is made between two calls of the progress hook, in bytes.
constexpr std::uint64_t kStep = std::uint64_t{32} << 20;

PackedForm form_of(format::Encoding encoding, Repack repack, const kernels::Kernels& k) {
  const bool t1 = encoding == format::Encoding::t1, s34 = encoding == format::Encoding::s34;
  switch (repack) {
    case Repack::none:
      break;
    case Repack::automatic:
      return t1 ? k.t1_best : s34 ? k.s34_best : PackedForm::none;
    case Repack::t2:
      return t1 ? PackedForm::t2 : PackedForm::none;
  }
  return PackedForm::none;
}

}  // namespace

void RepackedWeights::add(Weight& weight, Repack repack, const kernels::Kernels& kernels) {
  const PackedForm form = form_of(weight.shape.encoding, repack, kernels);
  if (form == PackedForm::none) return;
  const kernels::TernaryMatrix from = ternary_view(weight);
  const std::uint64_t blocks = round_up(from.rows, kernels::kRowBlock) / kernels::kRowBlock;
  entries_.push_back(
      {.body = {.form = form},
       .from = from,
       .automatic = repack == Repack::automatic,
       .bytes = blocks * kernels::packed_row_block_bytes(form, from.cols, from.scale_kind),
       .file_bytes = blocks * format::row_block_bytes(weight.shape)});
  weight.packed = &entries_.back().body;
}

// Drops what does not fit.
Result<void> RepackedWeights::choose(std::optional<std::uint64_t> available) {
  const std::uint64_t memory = available.value_or(std::numeric_limits<std::uint64_t>::max());
  std::uint64_t demanded = 0;
  for (const Entry& entry : entries_) demanded += entry.automatic ? 0 : entry.bytes;
  if (demanded > memory / 10 * 9) {
    const auto gigabytes = [](std::uint64_t n) { return static_cast<double>(n) * 1e-9; };
    return errorf(ErrorCode::out_of_memory,
                  "repacking takes %.2f GB of memory, %.2f GB are available: %.2f GB more are "
                  "needed",
                  gigabytes(demanded), gigabytes(memory), gigabytes(demanded - memory / 10 * 9));
  }
  std::uint64_t taken = demanded;
  for (Entry& entry : entries_) {
    if (!entry.automatic) continue;
    if (taken <= memory / 2 && entry.bytes <= memory / 2 - taken) {
      taken += entry.bytes;
    } else {
      entry.body.form = PackedForm::none;
    }
  }
  for (const Entry& entry : entries_) {
    if (entry.body.form == PackedForm::none) continue;
    ++totals_.tensors;
    totals_.bytes += entry.bytes;
    totals_.file_bytes += entry.file_bytes;
  }
  return {};
}

Result<void> RepackedWeights::make(std::optional<std::uint64_t> available, int threads,
                                   const RepackProgress& progress) {
  if (const auto chosen = choose(available); !chosen) return chosen;
  if (totals_.tensors == 0) return {};
  memory_ = AnonymousMemory(totals_.bytes);
  std::optional<ThreadPool> pool;
  try {
    pool.emplace(threads);
  } catch (const std::system_error& error) {
    return errorf(ErrorCode::out_of_memory, "cannot start threads: %s", error.what());
  }
  std::byte* to = memory_.data();
  std::uint64_t done = 0;
  for (Entry& entry : entries_) {
    if (entry.body.form == PackedForm::none) continue;
    entry.body.data = to;
    const std::size_t blocks = round_up(entry.from.rows, kernels::kRowBlock) / kernels::kRowBlock;
    const std::uint64_t block_bytes = entry.bytes / blocks;
    const std::size_t step = std::max<std::uint64_t>(1, kStep / block_bytes);
    for (std::size_t first = 0; first < blocks; first += step) {
      if (progress && !progress(done, totals_.bytes))
        return Error(ErrorCode::cancelled, "repacking was cancelled");
      const std::size_t n = std::min(step, blocks - first);
      pool->parallel_for(n, 4, [&](std::size_t begin, std::size_t end) {
        const auto row = [&](std::size_t block) { return (first + block) * kernels::kRowBlock; };
        kernels::repack(entry.body.form, entry.from, {row(begin), row(end)}, to);
      });
      done += n * block_bytes;
    }
    to += entry.bytes;
  }
  if (progress && !progress(done, totals_.bytes))
    return Error(ErrorCode::cancelled, "repacking was cancelled");
  return {};
}

}  // namespace tsq
