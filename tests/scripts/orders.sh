#!/usr/bin/env bash
# The two commands of the README work in any order, again and again, also in a build folder that a user has
# configured in another way. Run by .ci/run behind scripts/test, in the same clone: it takes some minutes, and
# needs no test of all for each.
# Usage: tests/scripts/orders.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

# Some tests of all kinds that are found and run only if the tests are configured and built.
some='^(Tree|Scripts)\.|^Ring\.'

say() { printf '\norders: %s\n' "$*"; }
page() { [ -s out/reproduce/report/index.html ] || { echo "orders: no page" >&2; exit 1; }; }

say "scripts/reproduce behind scripts/test"
scripts/reproduce
page
say "scripts/test behind scripts/reproduce"
scripts/test -R "$some"

say "both in a folder configured without tests and with another generator"
rm -rf build
cmake -B build -G "Unix Makefiles" -DPERDURA_BUILD_TESTS=OFF >/dev/null
scripts/reproduce
page
scripts/test -R "$some"
