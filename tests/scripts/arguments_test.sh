#!/usr/bin/env bash
# The commands of the README and scripts/format have a --help and refuse unknown arguments before they do anything.
# Usage: arguments_test.sh SOURCE_DIR
set -euo pipefail
cd "$1"

for script in scripts/test scripts/reproduce scripts/format; do
  for option in --help -h; do
    help=$("$script" $option)
    grep -q "  $script " <<<"$help" || { echo "$script $option does not show how to call it: $help" >&2; exit 1; }
  done
  set +e
  message=$("$script" --no-such-option 2>&1)
  code=$?
  set -e
  if [ $code -ne 2 ] || [ "$(wc -l <<<"$message")" -ne 1 ] || ! grep -q -- --no-such-option <<<"$message"; then
    echo "$script --no-such-option ended with $code and said: $message" >&2
    exit 1
  fi
done
