// What a mistyped word may have been meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tsq::tool {

// Letters to insert, delete, change or swap with their neighbour to make one word of the other,
// none touched twice.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to the word, by their letters without leading dashes: empty where none is
// within a third of the word's letters. The first of equals.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// What ends a message about an unknown word: "; did you mean '--temp'? see 'tsq run --help'".
std::string see_help(std::string_view word, const std::vector<std::string>& candidates,
                     const std::string& command);

}  // namespace tsq::tool
