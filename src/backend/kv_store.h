// The key/value cache in memory: [layer][sequence][kv head][position][head_dim], f16 or f32.
#pragma once

#include <cassert>
#include <cstring>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/checked.h"

namespace tsq {

class KvStore {
 public:
  KvStore(const KvShape& shape, bool f32)
      : shape_(shape),
        element_bytes_(f32 ? 4 : 2),
        keys_(bytes(shape, element_bytes_)),
        values_(bytes(shape, element_bytes_)) {}

  const KvShape& shape() const { return shape_; }

  std::byte* key(std::size_t layer, std::size_t sequence, std::size_t head, std::size_t position) {
    return keys_.data() + offset(layer, sequence, head, position);
  }
  std::byte* value(std::size_t layer, std::size_t sequence, std::size_t head,
                   std::size_t position) {
    return values_.data() + offset(layer, sequence, head, position);
  }
  // The first n positions of a sequence: the keys of every layer and head, then the values.
  std::vector<std::byte> save(std::size_t sequence, std::size_t n) {
    std::vector<std::byte> saved(saved_bytes(n));
    std::byte* to = saved.data();
    for_each_run(sequence, [&](std::byte* run) {
      std::memcpy(to, run, run_bytes(n));
      to += run_bytes(n);
    });
    return saved;
  }
  // saved: what save(), of a store that differs in its context at most, gave for n positions.
  void restore(std::size_t sequence, std::size_t n, std::span<const std::byte> saved) {
    assert(saved.size() == saved_bytes(n));
    const std::byte* from = saved.data();
    for_each_run(sequence, [&](std::byte* run) {
      std::memcpy(run, from, run_bytes(n));
      from += run_bytes(n);
    });
  }
  std::uint64_t memory_bytes() const { return keys_.size() + values_.size(); }

 private:
  static std::size_t bytes(const KvShape& s, std::size_t element_bytes) {
    std::size_t product = element_bytes;
    for (const std::size_t factor :
         {s.n_layers, s.n_sequences, s.n_kv_heads, s.context, s.head_dim}) {
      const auto next = checked_mul(product, factor);
      if (!next) throw std::bad_alloc();
      product = static_cast<std::size_t>(*next);
    }
    return product;
  }
  std::size_t run_bytes(std::size_t n) const { return n * shape_.head_dim * element_bytes_; }
  std::size_t saved_bytes(std::size_t n) const {
    return 2 * shape_.n_layers * shape_.n_kv_heads * run_bytes(n);
  }
  // The positions of one layer and head lie behind each other.
  template <class Visit>
  void for_each_run(std::size_t sequence, const Visit& visit) {
    for (Buffer<std::byte>* part : {&keys_, &values_}) {
      for (std::size_t layer = 0; layer < shape_.n_layers; ++layer) {
        for (std::size_t head = 0; head < shape_.n_kv_heads; ++head) {
          visit(part->data() + offset(layer, sequence, head, 0));
        }
      }
    }
  }
  std::size_t offset(std::size_t layer, std::size_t sequence, std::size_t head,
                     std::size_t position) const {
    const std::size_t run = (layer * shape_.n_sequences + sequence) * shape_.n_kv_heads + head;
    return (run * shape_.context + position) * shape_.head_dim * element_bytes_;
  }

  KvShape shape_;
  std::size_t element_bytes_;
  Buffer<std::byte> keys_, values_;
};

}  // namespace tsq
