#!/usr/bin/env bash
# package_test.sh CMAKE BUILD CONSUMER_SOURCE CXX: installs the build, moves the installed tree,
# and builds the program of the README against it in every way that the README names.
set -euo pipefail
cmake=$1 build=$2 source=$3 cxx=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CXX=$cxx

fail() { echo "package_test: $*" >&2; exit 1; }

# A consumer that tells a story has loaded, tokenised, run and sampled.
tells() {
  local words
  words=$(cd "$root" && "$@" | wc -w)
  ((words > 20)) || fail "$*: $words words, expected a story"
  echo "ok: $*"
}

"$cmake" --install "$build" --prefix "$folder/first" >/dev/null
mv "$folder/first" "$folder/prefix"
library=$(dirname "$(find "$folder/prefix" -name 'libtsq.so')")
grep -rqF "$folder/first" "$folder/prefix" && fail "an installed file names the prefix that it was installed to"

for shared in OFF ON; do
  "$cmake" -S "$here/package" -B "$folder/find-$shared" -DCMAKE_PREFIX_PATH="$folder/prefix" \
    -DBUILD_SHARED_LIBS=$shared -DCONSUMER_SOURCE="$source" >"$folder/log" || { cat "$folder/log"; exit 1; }
  "$cmake" --build "$folder/find-$shared" >"$folder/log" || { cat "$folder/log"; exit 1; }
  linked=$(readelf -d "$folder/find-$shared/consumer" | grep -c 'NEEDED.*libtsq\.so' || true)
  [[ $linked == $([[ $shared == ON ]] && echo 1 || echo 0) ]] ||
    fail "BUILD_SHARED_LIBS=$shared: $linked links to libtsq.so"
  tells "$folder/find-$shared/consumer"
done

export PKG_CONFIG_PATH=$library/pkgconfig
# shellcheck disable=SC2046
"$cxx" -std=c++20 "$source" $(pkg-config --cflags --libs tsq) -o "$folder/pkg-shared"
LD_LIBRARY_PATH=$library tells "$folder/pkg-shared"
mkdir "$folder/static"
cp "$library/libtsq.a" "$folder/static"
# shellcheck disable=SC2046
"$cxx" -std=c++20 "$source" -L"$folder/static" $(pkg-config --static --cflags tsq) -l:libtsq.a \
  $(pkg-config --static --libs tsq | sed 's/-ltsq//') -o "$folder/pkg-static"
tells "$folder/pkg-static"

soname=$(readelf -d "$library/libtsq.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[[ $soname == libtsq.so.0.1 && -e $library/$soname ]] || fail "SONAME is '$soname', expected libtsq.so.0.1"
foreign=$(nm -DC --defined-only "$library/libtsq.so" |
  grep -vE ' (tsq::(Loader|Model|Sampler|Session|Snapshot|Tokenizer)::|tsq::cpu_level\(\))' || true)
exported=$(nm -DC --defined-only "$library/libtsq.so")
# Something of every class that a header exports.
for header in loader model sampler session tokenizer; do
  while read -r class; do
    [[ $exported == *" tsq::$class::"* ]] ||
      fail "libtsq.so does not export tsq::$class"
  done < <(sed -n 's/^class TSQ_API \([A-Za-z]*\) {.*/\1/p' "$folder/prefix/include/tsq/$header.h")
done
[[ -z $foreign ]] || fail "libtsq.so exports what no header declares:"$'\n'"$foreign"
"$folder/prefix/bin/tsq" --version | grep -q tsq || fail "the installed tool does not run"
for page in man/man1/tsq.1 bash-completion/completions/tsq zsh/site-functions/_tsq \
  fish/vendor_completions.d/tsq.fish; do
  grep -q tsq "$folder/prefix/share/$page" || fail "$page is not installed"
done
echo "ok: SONAME, exports, tool, pages"
