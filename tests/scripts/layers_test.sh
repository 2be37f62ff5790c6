#!/bin/sh
# Folders include each other in one direction only: there are no circles between folders, and no top-level folder
# includes one that is above it. The test reads the product's sources, as the compiler does.
#
#   layers_test.sh SOURCE_DIR
set -eu
cd "$1"
. tests/scripts/product_folders.sh
order=$product_folders

pairs=$(mktemp)
trap 'rm -f "$pairs"' EXIT

# "FOLDER INCLUDED_FOLDER" once a line, of each include of a file with a folder's name.
included() {
  find $order \( -name '*.h' -o -name '*.cc' \) -exec grep -H '^#include "[^"]*/' {} + |
    sed -E 's|^([^:]*)/[^/:]*:#include "([^"]*)/[^/"]*".*|\1 \2|' | awk '$1 != $2' | sort -u
}

# Prints the violations among the pairs in a file, one per line.
circles() { tsort "$1" 2>&1 >/dev/null | sed 's/^tsort: //; s/^-: input contains a loop:/a circle of folders:/'; }
upward() {
  awk -v order="$order" '
    BEGIN { n = split(order, names, " "); for (i = 1; i <= n; ++i) level[names[i]] = i }
    { split($1, from, "/"); split($2, to, "/")
      if (!(to[1] in level)) print $1 " includes " $2 ", which is in no layer"
      else if (level[to[1]] < level[from[1]]) print $1 " includes " $2 ", which stands above it" }' "$1"
}

# The search must find a planted violation, or the test proves nothing.
printf '%s\n' 'platform/sim platform/fabric' 'platform/fabric platform/sim' >"$pairs"
[ -n "$(circles "$pairs")" ] || { echo "a circle is not noticed"; exit 1; }
printf '%s\n' 'platform/sim systems' >"$pairs"
[ -n "$(upward "$pairs")" ] || { echo "an arrow upward is not noticed"; exit 1; }

included >"$pairs"
[ "$(wc -l <"$pairs")" -gt 100 ] || { echo "the includes cannot be read"; exit 1; }
wrong=$(circles "$pairs"; upward "$pairs")
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }

# The library for other programs depends only on the systems and the layers below them.
wrong=$(awk '$1 ~ "^library" && $2 !~ "^(library|systems|services|methods|rpc|platform)"' "$pairs")
[ -z "$wrong" ] || { echo "the library includes $wrong"; exit 1; }

# The harness runs what drivers declare: it knows no service, no system, and no method of persistence.
wrong=$(awk '$1 ~ "^harness(/|$)" && $2 !~ "^(harness|platform)(/|$)"' "$pairs")
[ -z "$wrong" ] || { echo "the harness includes $wrong"; exit 1; }

# A report is made from result folders and their schema: it knows neither how they were produced nor any system.
wrong=$(awk '$1 ~ "^report(/|$)" && $2 !~ "^(report(/.*)?|harness/(schema|measure|text|program)|platform/base)$"' "$pairs")
[ -z "$wrong" ] || { echo "the report includes $wrong"; exit 1; }

# Only one file includes each library of templates that take seconds to compile; others use that file's interface.
for library in 'CLI/ harness/program/command.cc' 'nlohmann/ platform/base/json.cc'; do
  users=$(find $order tests -path tests/vm -prune -o \( -name '*.h' -o -name '*.cc' \) \
    -exec grep -l "^#include <${library% *}" {} + | tr '\n' ' ')
  [ "$users" = "${library#* } " ] || { echo "<${library% *}...> is included by $users"; exit 1; }
done
