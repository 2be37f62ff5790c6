#!/usr/bin/env bash
# One target builds everything that is installed: all targets are installed by the function that adds them to it, and
# that target builds every file that `cmake --install` takes from the build folder.
# Usage: installed_targets_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
cd "$1"
. tests/scripts/product_folders.sh
build=$2

# "FILE:LINE:TEXT" of each target that is installed in another way.
others() { grep -rnE --include=CMakeLists.txt --include='*.cmake' '^\s*install\(\s*(TARGETS|PROGRAMS)' "$@" || true; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
printf 'install(TARGETS some)\n' >"$place/CMakeLists.txt"
[ -n "$(others "$place")" ] || { echo "another way is not noticed"; exit 1; }
wrong=$(others CMakeLists.txt cmake $product_folders |
  { grep -v '^cmake/install.cmake:' || true; })
[ -z "$wrong" ] || { echo "installed, and not built by perdura_installed; use perdura_install_targets:"; echo "$wrong"; exit 1; }

# Only Ninja can list what a target builds. All names of a shared library are made at once.
[ -e "$build/build.ninja" ] || exit 0
in_build() { sed -E "s|^[^/]|$build/&|; s/\.so\.[0-9.]+$/.so/" | sort -u; }
files=$(find "$build" -name cmake_install.cmake -exec grep -hoE "\"$build/[^\"]*\"" {} + | tr -d '"' | in_build)
outputs=$(ninja -C "$build" -t targets all | grep -v ': phony$' | sed 's/: [^:]*$//' | in_build)
built=$(ninja -C "$build" -t query perdura_installed | sed -n '/^  input/,/^  outputs/s/^    //p' | in_build)
# Files that exist once the build is configured are not outputs of it.
installed=$(comm -12 <(echo "$files") <(echo "$outputs"))
[ "$(wc -l <<<"$installed")" -gt 8 ] || { echo "what is installed cannot be read"; exit 1; }
missing=$(comm -23 <(echo "$installed") <(echo "$built"))
[ -z "$missing" ] || { echo "installed, and not built by perdura_installed:"; echo "$missing"; exit 1; }
