#!/usr/bin/env bash
# Installs what is missing, builds the tool and lets the model of this repository tell a story:
# tools/demo.sh ["HOW IT BEGINS"]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

require_packages "${build_packages[@]}"
cmake --preset release -DTSQ_TESTS=OFF -DTSQ_BENCHES=OFF
cmake --build --preset release --target tsq_cli
echo
prompt=${1:-Once upon a time}
# 'tsq run' repeats the prompt on a terminal only.
[[ -t 1 && -t 2 ]] || printf '%s' "$prompt"
build/release/tsq run -m models/fairy-tales.tsq -p "$prompt" -n 200
