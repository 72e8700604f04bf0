#!/bin/sh
# int8_oracle_test.sh PYTHON TSQ TRACE_PROJECTIONS: the int8 path against the numpy oracle, matrix by
# matrix, on models of each ternary type, with activations per group and per token; and that the
# oracle finds planted defects.
set -eu
python=$1 tsq=$2 trace=$3
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check() {  # FILE.tsq MODEL.gguf
  rm -rf "$folder/trace"
  "$trace" "$1" "$folder/trace"
  "$python" "$here/reference/int8_oracle.py" "$folder/trace" "$2"
}
for model in qwen3_rot64.ptq1_0 llama_rot128.pq2_0 qwen3_rot128_wide.ptq1_0 qwen3_rot1024.pq2_0 \
             llama_tq.tq1_0 llama_half_groups.q2_0 llama_tensor_scale.i2_s; do
  gguf=$here/data/models/$model.gguf
  for encoding in auto t2; do
    echo "== $model as $encoding"
    "$tsq" convert "$gguf" -o "$folder/$model.tsq" --encoding $encoding --no-probe >"$folder/log"
    check "$folder/$model.tsq" "$gguf"
  done
  echo "== $model as t2, per token"
  "$python" "$here/reference/per_token.py" "$folder/$model.tsq" "$folder/token.tsq"
  check "$folder/token.tsq" "$gguf"
done
"$python" "$here/reference/int8_oracle.py" --self-test "$here/data/models/qwen3_rot64.ptq1_0.gguf"
