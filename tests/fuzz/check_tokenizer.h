// What a tokenizer section promises once it is parsed.
#pragma once

#include <cstdlib>
#include <span>

#include "format/tokenizer_section.h"

namespace tsq::fuzz {

inline volatile unsigned sink;  // so that reads are not optimised away

inline void read_every_byte(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
  sink = sum;
}

inline void check_tokenizer(const format::TokenizerView& view) {
  for (std::uint32_t id = 0; id < view.size(); ++id) {
    read_every_byte(std::as_bytes(std::span(view.token(id))));
    const auto found = view.find(view.token(id));
    if (found && *found >= view.size()) std::abort();
    const auto merged = view.merge(id, (id + 1) % view.size());
    if (merged && merged->result >= view.size()) std::abort();
  }
  for (const auto ids : {view.special_tokens(), view.end_tokens()}) {
    for (const std::uint32_t id : ids) {
      if (id >= view.size()) std::abort();
    }
  }
  for (const std::uint32_t id : {view.bos(), view.eos(), view.unknown(), view.padding()}) {
    if (id != format::kNoToken && id >= view.size()) std::abort();
  }
}

}  // namespace tsq::fuzz
