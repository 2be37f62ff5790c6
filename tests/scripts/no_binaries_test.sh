#!/usr/bin/env bash
# Tracked files are text: packages, objects and images of some machine do not belong in the tree.
# Usage: no_binaries_test.sh SOURCE_DIR; exit code 77 where the tree is not a git checkout.
set -euo pipefail
cd "$1"
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 77

# Compared with an empty tree, git counts the lines of text files, and prints '-' for others.
binaries=$(git diff --numstat "$(git hash-object -t tree /dev/null)" -- . | awk -F'\t' '$1 == "-" { print $3 }')
if [ -n "$binaries" ]; then
  echo "binary files are tracked; remove them (git rm --cached) and ignore their kind (.gitignore):" >&2
  echo "$binaries" >&2
  exit 1
fi
