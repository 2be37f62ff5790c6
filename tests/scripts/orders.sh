#!/usr/bin/env bash
# The two commands of the README work after each other, also in a build folder that a user has configured in another
# way, and after each of them the result can be installed. The first installation runs the commands of the documents
# (documents.sh). .ci/run runs this after scripts/test, in the same clone: it takes some minutes, and need not run all
# tests each time. The other folder is built and asked for what it has; no experiments are run there once more.
# Usage: tests/scripts/orders.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

# Some tests of each kind that ctest finds and runs only if the tests are configured and built.
some='^(Tree|Scripts)\.|^platform/runtime/Ring$'

# Everything that was built is installed: the programs, and the files that they start and preload.
installed() {
  rm -rf build/orders-prefix
  cmake --install build --prefix build/orders-prefix >/dev/null
  for file in bin/perdura bin/perdura-ado bin/perdura-report lib/perdura/libperdura_mojim.so; do
    [ -e "build/orders-prefix/$file" ] || { echo "orders: $file was not installed" >&2; exit 1; }
  done
  build/orders-prefix/bin/perdura list >/dev/null
  build/orders-prefix/bin/perdura-ado --help >/dev/null 2>&1 || [ $? -eq 2 ]
}
say() { printf '\norders: %s\n' "$*"; }

say "installing after scripts/test, and the documents' commands, with what was installed"
installed
tests/scripts/documents.sh build/orders-prefix
say "scripts/reproduce after scripts/test"
scripts/reproduce
[ -s out/reproduce/report/index.html ] || { echo "orders: no page" >&2; exit 1; }
say "scripts/test after scripts/reproduce"
scripts/test -R "$some"

say "a folder configured without tests and with another generator"
rm -rf build
cmake -B build -G "Unix Makefiles" -DPERDURA_BUILD_TESTS=OFF >/dev/null
scripts/configure
cmake --build build --parallel "$(nproc)" --target perdura_installed
say "installing from there"
installed
rm -rf build/orders-prefix
say "tests there"
scripts/configure --tests
cmake --build build --parallel "$(nproc)" --target perdura_runtime_test
ctest --test-dir build --no-tests=error --output-on-failure -R "$some"
