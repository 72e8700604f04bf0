#include "suggest.h"

#include <algorithm>
#include <utility>

namespace tsq::tool {
namespace {

std::string_view letters(std::string_view word) {
  return word.substr(std::min(word.size(), word.find_first_not_of('-')));
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table of distances between beginnings: of a without its last two letters, its last
  // one, and whole.
  std::vector<std::size_t> before, previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before =
        std::exchange(previous, std::exchange(current, std::vector<std::size_t>(b.size() + 1)));
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min(
          {previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string_view wanted = letters(word);
  if (wanted.empty() || wanted.size() > 64) return {};
  std::size_t least = wanted.size() / 3 + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, letters(candidate));
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string see_help(std::string_view word, const std::vector<std::string>& candidates,
                     const std::string& command) {
  const std::string best = nearest(word, candidates);
  return (best.empty() ? "; " : "; did you mean '" + best + "'? ") + "see '" + command + " --help'";
}

}  // namespace tsq::tool
