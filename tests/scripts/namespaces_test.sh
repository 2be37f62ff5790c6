#!/bin/sh
# A namespace says in which folder its names are defined: it is `perdura::` and folders of the file's path that follow
# each other, as `perdura::fs` in services/fs/crash. `perdura` alone is for
#
#   - platform, whose types (Bytes, Task, Platform) occur in nearly every line of a system
#   - library, for the calls that other programs use
#
# `detail` may follow any of them: a header has no namespace without a name for what only its templates use.
#
#   namespaces_test.sh SOURCE_DIR
set -eu
cd "$1"
. tests/scripts/product_folders.sh

# "FILE NAMESPACE", and why.
exceptions() {
  # Installed headers lie in one folder, and this one names its calls as library/mcas does, which implements them.
  echo library/perdura_objects.h perdura::mcas
}

# "FILE NAMESPACE" of each namespace in which a file defines something. A block that only declares types which are
# defined elsewhere defines nothing.
namespaces() {
  awk "$scopes_awk"'
    FNR == 1 { split("", found) }
    scope == "" || /^(namespace|\}  \/\/ namespace| *\/\/|(class|struct) [A-Za-z0-9_]+;|}?$)/ { next }
    !(scope in found) { found[scope]; print FILENAME, scope }' "$@"
}

# Prints those that do not name the file's folder, one per line.
foreign() {
  awk '
    { folder = $1; sub("/[^/]*$", "", folder)
      inner = $2; sub("::detail$", "", inner)
      if (inner == "perdura" && folder ~ "^(platform|library)(/|$)") next
      gsub("::", "/", inner)
      if (sub("^perdura/", "", inner) && index("/" folder "/", "/" inner "/")) next
      print $1 " is in namespace " $2 }'
}

# The search must find planted violations, or the test proves nothing.
for violation in 'services/kv/kv.h perdura::systems' 'services/fs/crash/a.h perdura::services::crash' \
  'services/kv/kv.h perdura::k' 'bench/micro/a.cc perdura' 'bench/micro/a.cc bench::micro'; do
  [ -n "$(echo "$violation" | foreign)" ] || { echo "not noticed: $violation"; exit 1; }
done

found=$(namespaces $(find $product_folders -name '*.h' -o -name '*.cc'))
[ "$(echo "$found" | wc -l)" -gt 1000 ] || { echo "the namespaces cannot be read"; exit 1; }
exceptions | while read -r file namespace; do
  echo "$found" | grep -qxF "$file $namespace" || { echo "$file is no exception any more: take it from the list"; exit 1; }
done
wrong=$(echo "$found" | grep -vxF "$(exceptions)" | foreign)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
