#!/bin/sh
# int8_oracle_test.sh PYTHON TSQ TRACE_PROJECTIONS: the int8 path against the numpy oracle, matrix by
# matrix, on models of each ternary type; and that the oracle finds planted defects.
set -eu
python=$1 tsq=$2 trace=$3
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for model in qwen3_rot64.ptq1_0 llama_rot128.pq2_0 qwen3_rot128_wide.ptq1_0 qwen3_rot1024.pq2_0 \
             llama_tq.tq1_0; do
  gguf=$here/data/models/$model.gguf
  for encoding in t1 t2; do
    echo "== $model as $encoding"
    "$tsq" convert "$gguf" -o "$folder/$model.$encoding.tsq" --encoding $encoding --no-probe >"$folder/log"
    "$trace" "$folder/$model.$encoding.tsq" "$folder/$model.$encoding"
    "$python" "$here/reference/int8_oracle.py" "$folder/$model.$encoding" "$gguf"
  done
done
"$python" "$here/reference/int8_oracle.py" --self-test "$here/data/models/qwen3_rot64.ptq1_0.gguf"
