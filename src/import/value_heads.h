// The value heads of gated DeltaNet (qwen35) in a GGUF, back in their natural order.
//
// n_v value heads share n_k key heads. Trained models group them: value head h reads key head
// h / (n_v / n_k). GGUF's converters tile them, h reads key head h mod n_k, in the rows of v in
// attn_qkv and ssm_conv1d, in attn_gate, ssm_alpha, ssm_beta, ssm_a and ssm_dt.bias, and in the
// columns of ssm_out, except where prism.hadamard.gdn_v_grouped says that these are grouped.
#pragma once

#include "import/checkpoint.h"

namespace tsq::importer {

// Groups the heads of every tensor, makes vectors f32, and turns ssm_conv1d: a row is a tap of all
// channels, the last that of the newest token. Does nothing for other architectures. damaged: the
// keys qwen35.ssm.* are missing, or contradict each other or a tensor; unsupported: columns of
// ssm_out that cannot be moved without their blocks, or whose order is not known. Call it after
// read_rotation_contract().
Result<void> group_value_heads(Checkpoint& checkpoint);

// Leaves out the layers that predict tokens further ahead (the last nextn_predict_layers of
// block_count), with a warning, and the rotations that only they use.
Result<void> drop_nextn_layers(Checkpoint& checkpoint);

}  // namespace tsq::importer
