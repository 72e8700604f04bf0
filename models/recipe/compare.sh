#!/bin/sh
# The small comparison: five runs of equal length that differ in the treatment of the matrices alone.
#   compare.sh DATA RUNS STEPS [FLAGS OF train.py]
set -e
data=$1 runs=$2 steps=$3
shift 3
flags=$*
here=$(dirname "$0")
small="--dim 256 --layers 2 --heads 4 --kv-heads 2 --ffn 512 --muon --batch 4 --processes 1 --log-steps 20 --eval-minutes 30 --decay-from 0.3"
run() {
  name=$1 weights=$2
  shift 2
  python3 "$here/train.py" --data "$data" --out "$runs/$name" --steps "$steps" $small $flags "$@" > "$runs/$name.txt"
  echo "$name"
  python3 "$here/evaluate.py" --checkpoint "$runs/$name/checkpoint.pt" --data "$data" $weights
}
mkdir -p "$runs"
run dense --dense --block 1 --no-ternary
ternary="--dense 0.2 --ramp 0.1"
run plain "" --block 1 $ternary
run rotated-64 "" --block 64 $ternary
run rotated-128 "" --block 128 $ternary
run rotated-full "" --block 0 $ternary
