// One checkpoint of another program, or another .tsq file, into one .tsq file, without losing a
// value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "convert/summary.h"
#include "format/reader.h"
#include "import/checkpoint.h"

namespace tsq::convert {

// How ternary tensors, and float tensors of ternary values, are stored. automatic is a fixed rule:
// t2 where the halves of a group of 128 have scales of their own, which only t2 can hold; else s34
// where every quad holds exactly one 0; else t1.
enum class TernaryEncoding : std::uint8_t { automatic, t1, t2 };

// What dense matrices (of two or more dims, rows of whole 32-blocks) are narrowed to. keep: nothing
// is lost; types that tsq has no encoding for become f16 where that holds every value of the
// tensor, else f32. Else: every one that would take more bits than this encoding. q4 also takes
// ternary matrices that the ternary encoding cannot hold (code 3; scales of 64 weights in t1),
// without loss.
enum class DenseEncoding : std::uint8_t { keep, f16, q8, q4 };

struct Progress {
  std::string_view tensor;                // the one at work
  std::uint64_t bytes_done, bytes_total;  // of the source's tensors
};

struct ConvertOptions {
  TernaryEncoding encoding = TernaryEncoding::automatic;
  DenseEncoding dense = DenseEncoding::keep;
  importer::AssumedLayouts layouts;  // of convert(); a checkpoint has been read already
  int threads = 1;
  // Runs the model in the file at this path over a fixed text and says what it predicts; the state
  // it returns may also be no_graph. Absent: the probe of a .tsq source is kept if it still holds,
  // that is, if every tensor keeps its values and is ternary where it was; else the file says
  // not_asked. Not called for a model without a tokenizer.
  std::function<Result<format::TokenProbe>(const std::filesystem::path& temporary)> token_probe;
  // Asked of the whole file before the probe: what it fails here would not run.
  std::function<Result<void>(const format::File& file)> check_model;
  // Accept a model that predicts the probe's text no better than chance (its weights are random).
  bool allow_random = false;
  // Called before and while each tensor is written; false cancels.
  std::function<bool(const Progress&)> progress;
};

// sources: what importer::open() takes: a GGUF, whole or split, a Hugging Face folder, or a .tsq
// file. The target appears whole, checked and with its probes, or not at all. invalid_argument: the
// target is one of the sources.
Result<Summary> convert(std::span<const std::filesystem::path> sources,
                        const std::filesystem::path& target, const ConvertOptions& options = {});

// The same for a checkpoint in memory.
Result<Summary> convert_checkpoint(importer::Checkpoint checkpoint,
                                   const std::filesystem::path& target,
                                   const ConvertOptions& options = {});

}  // namespace tsq::convert
