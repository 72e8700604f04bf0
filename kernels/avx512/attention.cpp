#include "kernels/avx512/lanes.h"
#include "kernels/isa.h"
#include "kernels/x86/attention_tile.h"

namespace tsq::kernels::avx512 {

void attention_f16(const AttentionTile& tile) noexcept { attention<std::uint16_t>(tile); }
void attention_f32(const AttentionTile& tile) noexcept { attention<float>(tile); }

}  // namespace tsq::kernels::avx512
