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
build/release/tsq run -m models/fairy-tales.tsq -p "${1:-Once upon a time}" -n 200 --display-prompt
