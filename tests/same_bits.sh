#!/bin/sh
# same_bits.sh BUILD BUILD: two builds, of whatever compilers, make the same .tsq of each tiny model and the same
# logits, on the best CPU level and on scalar.
set -eu
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seq 3 5 330 >"$folder/tokens"
models=0
for model in "$here"/data/models/*.gguf "$here"/data/models/*/ "$here"/data/qwen35/*.gguf; do
  for build in "$1" "$2"; do
    unset TSQ_ISA
    "$build/tsq" convert "$model" -o "$folder/model.tsq" --allow-random --force >"$folder/log" 2>&1 ||
      { cat "$folder/log"; exit 1; }
    sha256sum <"$folder/model.tsq"
    for level in best scalar; do
      [ $level = best ] || export TSQ_ISA=$level
      for activations in int8 f32; do
        "$build/tests/tsq_logits" "$folder/model.tsq" "$folder/tokens" "$folder/logits" \
          --activations $activations
        sha256sum <"$folder/logits"
      done
    done
  done >"$folder/sums"
  half=$(($(wc -l <"$folder/sums") / 2))
  head -n $half "$folder/sums" >"$folder/first"
  tail -n $half "$folder/sums" | cmp -s - "$folder/first" || { echo "$model: the builds differ"; exit 1; }
  models=$((models + 1))
done
echo "$models models: the same files, the same logits"
