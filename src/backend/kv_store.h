// The key/value cache in memory: [layer][sequence][kv head][position][head_dim], f16 or f32.
#pragma once

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
