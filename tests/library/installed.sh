#!/usr/bin/env bash
# installed.sh CMAKE BUILD EXAMPLE: installs the library from BUILD, builds EXAMPLE against it, and lets
# it append three records to a log; twice, the second time behind the first.
set -euo pipefail
cmake=$1 build=$2 example=$3
place=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$place"
}
trap cleanup EXIT

"$cmake" --install "$build" --prefix "$place/prefix" >/dev/null
"$cmake" -S "$example" -B "$place/build" -DCMAKE_PREFIX_PATH="$place/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$place/build" >/dev/null

job=example-$$
mkdir "$place/pm"
for round in 1 2; do
  "$place/build/serve" "$job" "$place/pm" >"$place/served$round" &
  server=$!
  appended=$(printf '%s\n' one two three | "$place/build/append" "$job" "$place/pm" | tr '\n' ' ')
  expected=$(seq -s ' ' $((3 * round - 2)) $((3 * round)))
  if [ "$appended" != "$expected " ]; then
    echo "round $round: appended as '$appended', expected '$expected '" >&2
    exit 1
  fi
  # The server prints what it applies; it is killed only then.
  until [ "$(grep -c . "$place/served$round" || true)" -ge 3 ]; do :; done
  kill -9 "$server"
  wait "$server" 2>/dev/null || true
  tail -n 3 "$place/served$round" | diff - <(paste -d ' ' <(seq $((3 * round - 2)) $((3 * round))) <(printf '%s\n' one two three))
done
