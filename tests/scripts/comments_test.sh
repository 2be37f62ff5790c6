#!/bin/sh
# Comments are sentences that a newcomer understands at first reading (CONTRIBUTING.md, "Comments"). This finds the
# three kinds of fragments that kept coming back: a genitive without its noun, a relative clause without a subject, and
# "behind" where "after" or "following" is meant.
#
#   comments_test.sh SOURCE_DIR [FOLDER...]    prints each of them; fails if there is any
set -eu
cd "$1"
shift
[ $# -gt 0 ] || set -- $(git ls-files -- '*.h' '*.cc' '*.c' 2>/dev/null | sed 's|/.*||' | sort -u | grep -vx tests)

# Prints "FILE:LINE: COMMENT" for each fragment in the files that standard input names.
fragments() {
  xargs awk '
    FNR == 1 { in_comment = 0 }
    {
      is_whole_line = match($0, /^[ \t]*\/\//)
      at = is_whole_line ? RSTART : match($0, /[;{},)][ \t]+\/\/ /)
      begins = at && !(is_whole_line && in_comment)
      in_comment = is_whole_line
      if (!at) next
      text = substr($0, at)
      sub(/^[^\/]*\/\/+[ \t]*/, "", text)
      fragment = begins && text ~ /^(Of|of|What|Whether|Who|Nothing if|Behind|Nobody who)( |$)/
      if (fragment || text ~ /(^|[^a-zA-Z`])behind([^a-zA-Z`]|$)/) print FILENAME ":" FNR ": " text
    }'
}

# The search must find each kind in the sample, or the test proves nothing.
sample=$(mktemp -d)
trap 'rm -rf "$sample"' EXIT
printf '%s\n' '// Of a copy: its logs.' '// of which nothing is left.' 'int a;  // Whether it is.' 'int b;' \
  '// A noun' '// What is not at the beginning of a comment is not looked at.' '  // It comes behind that.' >"$sample/a.h"
found=$(echo "$sample/a.h" | fragments | sed 's/^[^:]*:\([0-9]*\):.*/\1/' | tr '\n' ' ')
[ "$found" = '1 3 7 ' ] || { echo "fragments are found in lines $found of the sample, not in 1, 3 and 7"; exit 1; }

found=$(find "$@" \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) | sort | fragments)
[ -z "$found" ] || { echo "$found"; echo "$(echo "$found" | wc -l) comments are fragments (CONTRIBUTING.md)"; exit 1; }
