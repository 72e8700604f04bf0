// Panels of decoded ternary weights times columns: kernels/x86/tiles.h for this level.
#include "kernels/avxvnni/dot.h"
#include "kernels/x86/tiles.h"

namespace tsq::kernels::avxvnni {

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

}  // namespace tsq::kernels::avxvnni
