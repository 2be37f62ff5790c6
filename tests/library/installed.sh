#!/usr/bin/env bash
# installed.sh CMAKE BUILD SOURCE: installs from BUILD and uses the library as programs outside the tree do: the
# example by find_package, a C program by pkg-config, a shared library of somebody's that holds it.
set -euo pipefail
cmake=$1 build=$2 source=$3
place=$(mktemp -d)
job=test.$$-installed
server=
cleanup() {
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  rm -rf "$place" "/dev/shm/perdura-$job" "/dev/shm/perdura-$job-c" "/dev/shm/perdura-$job-o"
}
trap cleanup EXIT
fail() {
  echo "installed.sh: $*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$place/first" >/dev/null
# A prefix may move.
mv "$place/first" "$place/prefix"
library=$(dirname "$(find "$place/prefix" -name libperdura.so)")

# --- the example, by find_package
"$cmake" -S "$source/examples/remote-log" -B "$place/build" -DCMAKE_PREFIX_PATH="$place/prefix" \
  -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$place/build" >/dev/null
for program in serve append append_in_c; do
  code=0
  said=$("$place/build/$program" 2>&1) || code=$?
  [ $code -eq 2 ] || fail "$program without arguments ends with $code"
  [[ $said == "usage: $program "* ]] || fail "$program without arguments says '$said'"
  # An option is no log's name.
  for arguments in --help "--help $place"; do
    code=0
    # shellcheck disable=SC2086 # words
    said=$(timeout 5 "$place/build/$program" $arguments 2>&1) || code=$?
    [ $code -eq 2 ] && [[ $said == "usage: $program "* ]] || fail "$program $arguments: $code, '$said'"
  done
done
mkdir "$place/pm"
code=0
said=$("$place/build/serve" "$job" "$place/mistyped" 2>&1) || code=$?
[ $code -eq 1 ] && [[ $said == *"mistyped: there is no such folder"* ]] || fail "a mistyped directory: $code, '$said'"
for round in 1 2; do
  "$place/build/serve" "$job" "$place/pm" --emulated >"$place/served$round" &
  server=$!
  append=$([ $round -eq 1 ] && echo append || echo append_in_c)
  appended=$(printf '%s\n' one two three | "$place/build/$append" "$job" | tr '\n' ' ')
  expected=$(seq -s ' ' $((3 * round - 2)) $((3 * round)))
  [ "$appended" = "$expected " ] || fail "round $round: appended as '$appended', expected '$expected '"
  # The server prints what it applies; it is killed only then.
  until [ "$(grep -c . "$place/served$round" || true)" -ge 3 ]; do :; done
  kill -9 "$server"
  wait "$server" 2>/dev/null || true
  server=
  tail -n 3 "$place/served$round" |
    diff - <(paste -d ' ' <(seq $((3 * round - 2)) $((3 * round))) <(printf '%s\n' one two three))
done

# A server that is asked to end leaves nothing, also not what was left by those that were killed.
for signal in TERM INT; do
  "$place/build/serve" "$job" "$place/pm" --emulated >/dev/null &
  server=$!
  echo last | "$place/build/append" "$job" >/dev/null
  kill -$signal "$server"
  code=0
  wait "$server" || code=$?
  server=
  [ $code -eq 0 ] || fail "a server of a log that gets SIG$signal ends with $code"
  [ ! -e "/dev/shm/perdura-$job" ] || fail "a server of a log that gets SIG$signal leaves its job"
done

# --- pools on shards, with the installed program and the example
"$cmake" -S "$source/examples/objects" -B "$place/objects" -DCMAKE_PREFIX_PATH="$place/prefix" \
  -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$place/objects" >/dev/null
shards=$place/shards.toml
sed "s|\"balances\"|\"$job-o\"|; s|/tmp/balances|$place/balances|" "$source/examples/objects/shards.toml" >"$shards"
perdura=$place/prefix/bin/perdura
code=0
said=$("$perdura" mcas check "$shards" 2>&1) || code=$?
[ $code -eq 2 ] && [[ $said == *"shards.toml: [shards.left]: the directory $place/balances: there is no such folder"* ]] ||
  fail "a missing directory: $code, '$said'"
mkdir "$place/balances"
for round in 1 2 3; do
  : >"$place/said"
  "$perdura" mcas serve "$shards" >"$place/said" &
  server=$!
  [ $round -gt 1 ] || for name in ada bob cyd; do "$place/objects/balances" "$shards" set $name "100 of $name"; done
  for name in ada bob cyd; do
    [ "$("$place/objects/balances" "$shards" get $name)" = "100 of $name" ] || fail "round $round: $name has another balance"
  done
  if [ $round -eq 1 ]; then kill -9 "$server"; else kill "$server"; fi
  code=0
  wait "$server" 2>/dev/null || code=$?
  server=
  [ $round -eq 1 ] || [ $code -eq 0 ] || fail "a server that is asked to end ends with $code"
  [ "$(grep -c ' serves$' "$place/said")" -eq 2 ] || fail "the server says '$(cat "$place/said")'"
done
code=0
said=$("$place/objects/balances" "$place/nothing" get ada 2>&1) || code=$?
[ $code -eq 1 ] && [[ $said == "balances: $place/nothing: there is no such file"* ]] || fail "no file: $code, '$said'"

# --- a plugin of somebody's, which the installed program loads
mkdir "$place/sums"
"$cmake" -S "$source/examples/plugin" -B "$place/counter" -DCMAKE_PREFIX_PATH="$place/prefix" \
  -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$place/counter" >/dev/null || fail "a plugin outside the tree is not built"
# The process that loads it has a user of its own.
chmod a+rx "$place"
isolation=$([ "$(id -u)" -eq 0 ] && echo true || echo false)
cat >"$place/counter.toml" <<END
job = "$job-o"
[shards.sums]
node = 0
directory = "$place/sums"
emulated = true
plugins = ["$place/counter/libcounter.so"]
plugin_isolation = $isolation
END
"$perdura" mcas serve "$place/counter.toml" >/dev/null &
server=$!
said=$(for _ in 1 2; do "$place/counter/count" "$job-o" visitors 2>&1 | tr '\n' ' '; done)
[ "$said" = "1 2 " ] || fail "a plugin outside the tree counts '$said'"
kill "$server"
wait "$server" || fail "the server with a plugin ends with $?"
server=

# --- the static library in a shared one
cat >"$place/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(Plugin LANGUAGES CXX)
find_package(Perdura REQUIRED)
add_library(plugin SHARED plugin.cc)
target_link_libraries(plugin PRIVATE Perdura::perdura)
target_link_options(plugin PRIVATE LINKER:--no-undefined)
add_executable(program program.cc)
target_link_libraries(program PRIVATE Perdura::perdura_shared)
END
cat >"$place/plugin.cc" <<'END'
#include <perdura.h>
std::size_t plugin() { return perdura::choose(perdura::Configuration{}, {}).size(); }
END
cat >"$place/program.cc" <<'END'
#include <perdura_objects.h>
int main() {
  try {
    perdura::mcas::Client({.job = "nobody serves it"});
    return 1;
  } catch (const std::invalid_argument&) {  // a blank
  }
  try {
    perdura::LogClient({.job = "nobody serves it", .connect_timeout = std::chrono::milliseconds(0)});
  } catch (const std::invalid_argument&) {  // a blank
    try {
      perdura::choose(perdura::Configuration{.domain = perdura::Domain::dmp, .ddio = true}, {.responder_cpu = false});
    } catch (const perdura::Refused&) {  // known on both sides of the library's border
      return 0;
    }
  }
  return 1;
}
END
"$cmake" -S "$place" -B "$place/plugin" -DCMAKE_PREFIX_PATH="$place/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
"$cmake" --build "$place/plugin" >/dev/null
"$place/plugin/program" || fail "a program with the shared library fails"

# --- a project of C alone
needed() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(libperdura[^]]*\)\].*/\1/p'; }
mkdir "$place/c"
cat >"$place/c/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(C LANGUAGES C)
set(CMAKE_C_STANDARD 99)
find_package(Perdura 0.1 REQUIRED)
foreach(kind static shared)
  add_executable(c_\${kind} $source/tests/library/c_test.c)
  add_executable(objects_\${kind} $source/tests/library/mcas/c_test.c)
  target_compile_definitions(c_\${kind} PRIVATE _POSIX_C_SOURCE=200809L)
endforeach()
foreach(program c objects)
  target_link_libraries(\${program}_static PRIVATE Perdura::perdura)
  target_link_libraries(\${program}_shared PRIVATE Perdura::perdura_shared)
endforeach()
END
"$cmake" -S "$place/c" -B "$place/c/build" -DCMAKE_PREFIX_PATH="$place/prefix" >/dev/null
"$cmake" --build "$place/c/build" >/dev/null || fail "a project of C alone is not built"
for kind in static shared; do
  mkdir -p "$place/pm-cmake-$kind"
  "$place/c/build/c_$kind" "$job-c" "$place/pm-cmake-$kind" >/dev/null || fail "C by CMake, $kind: $?"
done
"$perdura" mcas serve "$shards" --shard left >/dev/null &
server=$!
for kind in static shared; do
  "$place/c/build/objects_$kind" "$job-o" >/dev/null || fail "pools in C by CMake, $kind: $?"
done
kill "$server"
wait "$server" || fail "the server of C programs ends with $?"
server=
[ -z "$(needed "$place/c/build/c_static")" ] || fail "the static C program of CMake needs the shared library"

# --- where what the static library stands on is missing
missing() {
  cat >"$place/missing.cmake" <<END
cmake_minimum_required(VERSION 3.25)
project(Missing LANGUAGES CXX)
find_package(Perdura REQUIRED $1)
file(WRITE program.cc "#include <perdura.h>\nint main() { perdura::choose(perdura::Configuration{}, {}); }\n")
add_executable(program program.cc)
target_link_libraries(program PRIVATE Perdura::perdura_shared)
END
  rm -rf "$place/missing"
  mkdir "$place/missing"
  mv "$place/missing.cmake" "$place/missing/CMakeLists.txt"
  PKG_CONFIG_LIBDIR=$place/missing "$cmake" -S "$place/missing" -B "$place/missing/build" \
    -DCMAKE_PREFIX_PATH="$place/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON 2>&1 | tr -s ' \n' ' '
}
for components in "" "COMPONENTS shared"; do
  said=$(missing "$components") || fail "the shared library asks for more than itself ($components): $said"
  "$cmake" --build "$place/missing/build" >/dev/null || fail "a program with it is not built ($components)"
done
code=0
said=$(missing "COMPONENTS static") || code=$?
[ $code -ne 0 ] && [[ $said == *"needs what was not found: fmt, tomlplusplus, libisal, re2, numa, libseccomp"* ]] ||
  fail "the static library without its dependencies: $code, $said"

# --- a C program, by pkg-config
export PKG_CONFIG_PATH=$library/pkgconfig
version=$(pkg-config --modversion perdura)
for kind in shared static; do
  package=$([ $kind = shared ] && echo perdura || echo perdura-static)
  flags=$(pkg-config --cflags "$package")
  for flag in $flags; do
    [[ $flag == "-I$library/"* ]] || fail "$package wants to be compiled with $flag"
  done
  # shellcheck disable=SC2046,SC2086 # words
  cc -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror "$source/tests/library/c_test.c" \
    -o "$place/c_$kind" $(pkg-config --cflags --libs "$package") -lpthread
  mkdir -p "$place/pm-$kind"
  LD_LIBRARY_PATH=$library "$place/c_$kind" "$job-c" "$place/pm-$kind" >/dev/null || fail "C, $kind: $?"
done
[ "$(needed "$place/c_shared")" = "libperdura.so.${version%.*}" ] ||
  fail "the C program needs '$(needed "$place/c_shared")'"
[ -z "$(needed "$place/c_static")" ] || fail "the static one needs the shared"
strange=$(nm -D --defined-only -C "$library/libperdura.so" | cut -d ' ' -f 3- | grep -v '^perdura\(::\|_\)\|^PERDURA_' || true)
[ -z "$strange" ] || fail "the shared library shows what is not its own: $strange"
