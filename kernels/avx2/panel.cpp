// Panels of decoded ternary weights times columns: kernels/x86/tiles.h for this level.
#include "kernels/avx2/dot.h"
#include "kernels/x86/tiles.h"

namespace tsq::kernels::avx2 {

void interleave(const std::int8_t* q, std::size_t n, std::size_t cols, std::int8_t* to) noexcept {
  constexpr std::size_t kColumns = level::kTileColumns;
  for (std::size_t c = 0; c + kColumns <= n; c += kColumns) {
    interleave_columns<kColumns>(q + c * cols, cols, cols, to + c * cols);
  }
}

void panel(const Panel& p, const PanelGroups& groups, const Q8Matrix& x,
           const PanelColumns& columns, const BlockOutputs& y) noexcept {
  multiply_panel<1, Chain>(p, groups, x, columns, y);
}
void panel_half_groups(const Panel& p, const PanelGroups& groups, const Q8Matrix& x,
                       const PanelColumns& columns, const BlockOutputs& y) noexcept {
  multiply_panel<2, Chain>(p, groups, x, columns, y);
}
void panel_whole_rows(const Panel& p, const PanelGroups& groups, const Q8Matrix& x,
                      const PanelColumns& columns, const BlockOutputs& y) noexcept {
  multiply_panel<1, WholeRow>(p, groups, x, columns, y);
}
void panel_f32(const Panel& p, const PanelGroups& groups, const F32Matrix& x,
               const PanelColumns& columns, const BlockOutputs& y) noexcept {
  multiply_panel<1>(p, groups, x, columns, y);
}
void panel_half_groups_f32(const Panel& p, const PanelGroups& groups, const F32Matrix& x,
                           const PanelColumns& columns, const BlockOutputs& y) noexcept {
  multiply_panel<2>(p, groups, x, columns, y);
}

}  // namespace tsq::kernels::avx2
