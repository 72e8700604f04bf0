// The merges of a tokenizer.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace tsq::importer {

using TextPair = std::pair<std::string_view, std::string_view>;

// A range of TextPair: the merges as they stand in the file. There may be half a million, so that
// no list is made of them.
class HfMerges {
 public:
  static constexpr std::uint64_t kMaxTextBytes = 10u << 20;  // of all merges

  // model: that of the tokenizer.json, which outlives the merges. damaged: no array, or a merge
  // that is not two texts; unsupported: too many, or too much text.
  static Result<HfMerges> of(const Json& model);

  class Iterator {
   public:
    explicit Iterator(Json::Iterator at) : at_(at) {}
    TextPair operator*() const;
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    Json::Iterator at_;
  };
  std::size_t size() const { return list_.size(); }
  Iterator begin() const { return Iterator(list_.begin()); }
  Iterator end() const { return Iterator(list_.end()); }

 private:
  explicit HfMerges(Json list) : list_(list) {}
  Json list_;
};

}  // namespace tsq::importer
