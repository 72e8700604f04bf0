#!/usr/bin/env bash
# Installs what is missing, builds release with warnings as errors and runs every test. Arguments
# go to ctest: tools/test.sh -R format
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

require_packages "${build_packages[@]}" "${test_packages[@]}"
cmake --preset release -DTSQ_TESTS=ON -DTSQ_BENCHES=ON -DTSQ_WERROR=ON
cmake --build --preset release
ctest --preset release --parallel "$(nproc)" "$@"
