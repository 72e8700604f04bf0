// The Prism contract: the keys `prism.hadamard.*` say which weights of a GGUF are stored rotated.
//
// Stored W' = W diag(s) H along the input side, so y = W' H (s * x): signs first, then H, which is
// block-diagonal, orthonormal, in Sylvester's order. A weight listed under inverse_weight_names is
// an embedding: its rows come back as s * (H z). The sign vector s is picked by the input width.
//
// A tied head needs no entry of its own: the record of token_embd.weight is rotated, and the engine
// multiplies with it or looks rows up through the same rotation. Where token_embd.weight is not
// listed it is stored plain, and a tied head is plain with it.
//
// gdn_v_grouped says that ssm_out expects the value heads of gated DeltaNet in grouped order. A
// rotated ssm_out without it was permuted before H, which nothing can undo: refused.
#pragma once

#include "import/checkpoint.h"

namespace tsq::importer {

// Reads the contract of checkpoint.metadata, if it holds one, and fills rotations, the rotation of
// every tensor it names, gdn_v_grouped, and warnings. Refuses by name whatever is missing,
// contradicts itself or the tensors (damaged), or is beyond version 1 (unsupported).
Result<void> read_rotation_contract(Checkpoint& checkpoint);

}  // namespace tsq::importer
