// Panels of decoded ternary weights times columns: kernels/x86/tiles.h for this level.
#include "kernels/avxvnni/dot.h"
#include "kernels/x86/tiles.h"

namespace tsq::kernels::avxvnni {

void panel(const Panel& p, std::size_t first, std::size_t groups, const Q8Matrix& x,
           const BlockOutputs& y) noexcept {
  multiply_panel<1, Chain>(p, first, groups, x, y);
}
void panel_half_groups(const Panel& p, std::size_t first, std::size_t groups, const Q8Matrix& x,
                       const BlockOutputs& y) noexcept {
  multiply_panel<2, Chain>(p, first, groups, x, y);
}
void panel_whole_rows(const Panel& p, std::size_t first, std::size_t groups, const Q8Matrix& x,
                      const BlockOutputs& y) noexcept {
  multiply_panel<1, WholeRow>(p, first, groups, x, y);
}

}  // namespace tsq::kernels::avxvnni
