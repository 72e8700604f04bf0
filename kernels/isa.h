// What each CPU level defines, declared by the types of kernels.h: a definition that drifts from
// its type does not link. A level names only the kernels that pay there; the table takes the rest
// from the level below.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/panel.h"

namespace tsq::kernels {

namespace scalar {
TernaryGemmFn t2_gemm, t1_gemm, s34_gemm;
TernaryGemmF32Fn t2_gemm_f32, t1_gemm_f32, s34_gemm_f32;
TernaryRowFn t2_row, t1_row, s34_row;
DenseGemmFn dense_gemm;
DenseRowFn dense_row;
FwhtFn fwht;
RotateFn rotate;
UnrotateFn unrotate;
FwhtMatrixFn fwht_matrix;
QuantizeFn quantize;
RotateQuantizeFn rotate_quantize;
RmsNormFn rms_norm;
RopeFn rope;
SiluMulFn silu_mul;
SigmoidMulFn sigmoid_mul;
AddFn add;
ToF16Fn to_f16;
FromF16Fn from_f16;
AttentionFn attention_f16, attention_f32;
ExpFn exp;
L2NormFn l2_norm;
CausalConvFn causal_conv;
DeltaGatesFn delta_gates;
DeltaNetFn delta_net;
}  // namespace scalar

namespace avx2 {
inline constexpr std::size_t kTileColumns = 6;  // as many as 16 registers hold
InterleaveFn interleave;
PanelFn<Q8Matrix> panel, panel_half_groups, panel_whole_rows;
PanelFn<F32Matrix> panel_f32, panel_half_groups_f32;
TernaryGemmFn t2_gemm, t1_gemm, s34_gemm, s34_lut_gemv;
S34TablesFn s34_tables;
TernaryGemmF32Fn t2_gemm_f32, t1_gemm_f32, s34_gemm_f32;
DenseGemmFn dense_gemm;
FwhtFn fwht;
RotateFn rotate;
UnrotateFn unrotate;
FwhtMatrixFn fwht_matrix;
QuantizeFn quantize;
RotateQuantizeFn rotate_quantize;
RmsNormFn rms_norm;
RopeFn rope;
SiluMulFn silu_mul;
SigmoidMulFn sigmoid_mul;
AddFn add;
ToF16Fn to_f16;
FromF16Fn from_f16;
AttentionFn attention_f16, attention_f32;
ExpFn exp;
L2NormFn l2_norm;
CausalConvFn causal_conv;
DeltaNetFn delta_net;
}  // namespace avx2

namespace avxvnni {
PanelFn<Q8Matrix> panel, panel_half_groups, panel_whole_rows;
TernaryGemmFn t2_gemm, t1_gemm, s34_gemm;
}  // namespace avxvnni

namespace avx512 {
inline constexpr std::size_t kTileColumns = 10;  // of 32 registers
InterleaveFn interleave;
PanelFn<Q8Matrix> panel, panel_half_groups, panel_whole_rows;
PanelFn<F32Matrix> panel_f32, panel_half_groups_f32;
TernaryGemmFn t2_gemm, t1_gemm, s34_gemm, t1_escape_gemv;
TernaryGemmF32Fn t2_gemm_f32, t1_gemm_f32, s34_gemm_f32;
DenseGemmFn dense_gemm;
FwhtFn fwht;
RotateFn rotate;
UnrotateFn unrotate;
FwhtMatrixFn fwht_matrix;
QuantizeFn quantize;
RotateQuantizeFn rotate_quantize;
RmsNormFn rms_norm;
SiluMulFn silu_mul;
SigmoidMulFn sigmoid_mul;
AttentionFn attention_f16, attention_f32;
ExpFn exp;
L2NormFn l2_norm;
CausalConvFn causal_conv;
DeltaNetFn delta_net;
}  // namespace avx512

}  // namespace tsq::kernels
