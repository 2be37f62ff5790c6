#!/bin/sh
# Each type has a unique name in its namespace: two that share one are linked into the same program without a warning,
# and the destructor of one then destroys the other. Types of unnamed namespaces cannot be confused.
#
# A few words say too little to name two types, in whatever scope: there were 17 types named Place, each with a meaning
# of its own (CONTRIBUTING.md, "Style").
#
#   types_test.sh SOURCE_DIR
set -eu
cd "$1"
. tests/scripts/product_folders.sh

# "NAMESPACE::TYPE FILE" of each type that is defined directly in a named namespace, in the style of .clang-format.
types() {
  awk "$scopes_awk"'
    !unnamed && /^(struct|class|enum class|union) [A-Za-z0-9_]+( final)?( :.*)? \{/ {
      print scope "::" ($1 == "enum" ? $3 : $2), FILENAME
    }' "$@"
}
shared() { sort -u | awk '$1 == name { print $1 ": " file " and " $2 } { name = $1; file = $2 }'; }

# The search must find a planted pair, or the test proves nothing.
[ -n "$(printf '%s\n' 'a::T one.h' 'a::T two.h' | shared)" ] || { echo "a shared name is not noticed"; exit 1; }

sources=$(find $product_folders -name '*.h' -o -name '*.cc')
[ "$(types $sources | wc -l)" -gt 500 ] || { echo "the types cannot be read"; exit 1; }
wrong=$(types $sources | shared)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }

# "WORD FILE:LINE" of each type that is named by one of those words, also within a class. Aliases are not types.
words='Place|Entry|Found|Change|Reader'
homonyms() {
  grep -nHE "^ *(struct|class|enum class|union) ($words)( final)?( :.*)? \\{" "$@" |
    sed -E "s/^([^:]*:[0-9]*):.*\\b(struct|class|union) ($words)\\b.*/\\3 \\1/" | shared
}

probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
printf '%s\n' 'struct Place {' 'template <class Place>' 'using Place = a::Place;' '  class Place final {' >"$probe"
[ "$(homonyms "$probe")" = "Place: $probe:1 and $probe:4" ] || { echo "homonyms are not noticed"; exit 1; }

wrong=$(homonyms $sources)
[ -z "$wrong" ] || { echo "types share a name that says too little:"; echo "$wrong"; exit 1; }
