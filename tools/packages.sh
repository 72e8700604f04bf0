# Sourced by tools/demo.sh, tools/test.sh and .ci/run: what a build needs, named once.

build_packages=(cmake ninja-build g++ pkg-config libcli11-dev libpcre2-dev
                libedit-dev libspdlog-dev libutf8proc-dev nlohmann-json3-dev libssl-dev
                libxxhash-dev)
test_packages=(libgtest-dev libbenchmark-dev python3 python3-numpy)
clang_packages=(clang-14 libclang-rt-14-dev)

# Installs those of the packages named that are missing, on Debian and its kin; elsewhere names
# them and stops.
require_packages() {
  if ! command -v apt-get >/dev/null; then
    echo "${0##*/}: needs what Debian calls: $*" >&2
    echo "${0##*/}: install them, then: cmake --preset release && cmake --build --preset release" >&2
    exit 1
  fi
  local package missing=()
  for package in "$@"; do
    [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" == *" installed" ]] ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  local as_root=()
  if [[ "$(id -u)" != 0 ]]; then
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
      echo "${0##*/}: missing packages; as root: apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}
