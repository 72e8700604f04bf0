#include "import/hf_merges.h"

#include <cinttypes>
#include <optional>

#include "base/errorf.h"
#include "format/tokenizer_section.h"

namespace tsq::importer {
namespace {

// A text with one space in it, or an array of two texts.
std::optional<TextPair> read_merge(const Json& merge) {
  std::optional<std::string_view> left, right;
  if (const auto text = merge.as_string()) {
    const std::size_t space = text->find(' ');
    if (space != std::string_view::npos && text->find(' ', space + 1) == std::string_view::npos) {
      left = text->substr(0, space);
      right = text->substr(space + 1);
    }
  } else if (merge.kind() == JsonKind::array && merge.size() == 2) {
    auto part = merge.begin();
    left = (*part).value.as_string();
    right = (*++part).value.as_string();
  }
  if (!left || !right || left->empty() || right->empty()) return std::nullopt;
  return TextPair(*left, *right);
}

}  // namespace

Result<HfMerges> HfMerges::of(const Json& model) {
  const auto list = model.find("merges");
  if (!list || list->kind() != JsonKind::array) {
    return errorf(ErrorCode::damaged, "'model.merges' is %s, expected an array",
                  !list || list->kind() == JsonKind::null ? "missing" : json_text(*list).c_str());
  }
  if (list->size() > format::kMaxMerges) {
    return errorf(ErrorCode::unsupported, "%zu merges, at most %u are supported", list->size(),
                  format::kMaxMerges);
  }
  std::size_t i = 0;
  std::uint64_t bytes = 0;
  for (const auto& [key, merge] : *list) {
    const auto pair = read_merge(merge);
    if (!pair) {
      return errorf(ErrorCode::damaged, "merge %zu is %s, expected two texts", i,
                    json_text(merge).c_str());
    }
    bytes += pair->first.size() + pair->second.size();
    ++i;
  }
  if (bytes > kMaxTextBytes) {
    return errorf(ErrorCode::unsupported,
                  "merges of %" PRIu64 " bytes of text, at most %" PRIu64 " are supported", bytes,
                  kMaxTextBytes);
  }
  return HfMerges(*list);
}

TextPair HfMerges::Iterator::operator*() const {
  return read_merge((*at_).value).value_or(TextPair());
}

}  // namespace tsq::importer
