#!/usr/bin/env bash
# subdirectory_test.sh CMAKE CONSUMER_SOURCE CXX: a project that adds tsq's folder to its own.
set -euo pipefail
cmake=$1 source=$2 cxx=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Unoptimised: what is tested is that it builds, and nothing else does.
CXX=$cxx "$cmake" -S "$here/package/subdirectory" -B "$folder/build" -G Ninja \
  -DTSQ_SOURCE_DIR="$root" -DCONSUMER_SOURCE="$source" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS_RELEASE=-O0
"$cmake" --build "$folder/build" --target consumer
words=$(cd "$root" && "$folder/build/consumer" | wc -w)
((words > 20)) || { echo "subdirectory_test: $words words, expected a story" >&2; exit 1; }
