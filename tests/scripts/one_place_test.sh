#!/bin/sh
# What a host may refuse is asked for in one place each, which names the limit and undoes what was begun:
#
#   - threads of the operating system: platform/host/os_thread.cc
#
#   one_place_test.sh SOURCE_DIR
set -eu
cd "$1"

# Lines of the product that start a thread by themselves, "FILE:LINE:TEXT".
starts() {
  grep -nE 'std::(jthread|async)\b|std::thread( [a-z_]+)?[({]|std::vector<std::thread>|\bpthread_create\(|\bthrd_create\(' "$@" /dev/null |
    grep -vE '^[^:]*:[0-9]+: *//' || true
}

# What this finds must be found where it is, or the test says nothing.
probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
for line in 'thread_ = std::thread([this] { run(); });' 'std::jthread other(work);' 'std::thread other{work};' \
  'std::vector<std::thread> threads;' 'auto later = std::async(work);' 'pthread_create(&thread, nullptr, run, this);'; do
  echo "$line" >"$probe"
  [ -n "$(starts "$probe")" ] || { echo "not noticed: $line"; exit 1; }
done

wrong=$(starts $(find platform rpc persistence services systems library harness report bench -name '*.h' -o -name '*.cc' |
  grep -v '^platform/host/os_thread\.') )
[ -z "$wrong" ] || { echo "a thread is started elsewhere than by platform/host/os_thread.h:"; echo "$wrong"; exit 1; }
