# Sourced by tests, with the test's name: makes $folder, empty at first and gone when the test ends. What a
# test leaves that is killed is removed by the next one, of any name (leftovers.h makes the same names).
for left in "${TMPDIR:-/tmp}"/perdura-test.*; do
  process=${left##*/perdura-test.}
  process=${process%%-*}
  case $process in
    '' | *[!0-9]*) ;;
    *) [ -e "/proc/$process" ] || rm -rf "$left" ;;
  esac
done
folder=${TMPDIR:-/tmp}/perdura-test.$$-$1
mkdir "$folder"
trap 'rm -rf "$folder"' EXIT
