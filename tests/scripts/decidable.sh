#!/usr/bin/env bash
# Each experiment for real platforms has as many repetitions as `perdura compare` needs to tell a change from chance.
# A short run of it gives the number of comparisons.
# Usage: decidable.sh SOURCE_DIR PERDURA
set -euo pipefail
source=$1 perdura=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
found=0
for file in "$source"/experiments/*.toml; do
  grep -q '^platform = "shm"' "$file" || continue
  grep -q '^driver = "fs"' "$file" && continue  # needs a folder of a mounted file system
  name=$(basename "$file" .toml)
  "$perdura" run "$file" --quiet --set workload.operations=200 --set workload.warmup=0 --set repetitions=1 \
    --out "$place/$name" >"$place/log" 2>&1 || { echo "$name cannot be run:"; cat "$place/log"; exit 1; }
  "$perdura" compare "$place/$name" "$place/$name" --json >"$place/$name.json" 2>"$place/log" || true
  needed=$(sed -n 's/^ *"repetitions_needed": \([0-9]*\).*/\1/p' "$place/$name.json")
  has=$(sed -n 's/^repetitions = \([0-9]*\).*/\1/p' "$file")
  [ -n "$needed" ] || { echo "$name: perdura compare does not say how many repetitions are needed:"; cat "$place/log"; exit 1; }
  [ "${has:-1}" -ge "$needed" ] || { echo "$name has ${has:-1} repetitions, and perdura compare needs $needed"; exit 1; }
  found=$((found + 1))
done
[ "$found" -ge 4 ] || { echo "only $found experiments were found"; exit 1; }
