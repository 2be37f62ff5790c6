#!/bin/sh
# Each kind of request that a host may refuse is made in one place, which names the limit and undoes partial work:
#
#   - threads of the operating system: platform/host/os_thread.cc
#   - the kind of a path, and the contents of a folder: platform/base/path_kind.cc, which does not report a path that
#     may not be examined as missing
#
#   one_place_test.sh SOURCE_DIR
set -eu
cd "$1"
. tests/scripts/product_folders.sh

# Lines of the product that start a thread by themselves, "FILE:LINE:TEXT".
starts() {
  grep -nE 'std::(jthread|async)\b|std::thread( [a-z_]+)?[({]|std::vector<std::thread>|\bpthread_create\(|\bthrd_create\(' "$@" /dev/null |
    grep -vE '^[^:]*:[0-9]+: *//' || true
}

# The search must find planted lines, or the test proves nothing.
probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
for line in 'thread_ = std::thread([this] { run(); });' 'std::jthread other(work);' 'std::thread other{work};' \
  'std::vector<std::thread> threads;' 'auto later = std::async(work);' 'pthread_create(&thread, nullptr, run, this);'; do
  echo "$line" >"$probe"
  [ -n "$(starts "$probe")" ] || { echo "not noticed: $line"; exit 1; }
done

wrong=$(starts $(find $product_folders -name '*.h' -o -name '*.cc' |
  grep -v '^platform/host/os_thread\.') )
[ -z "$wrong" ] || { echo "a thread is started elsewhere than by platform/host/os_thread.h:"; echo "$wrong"; exit 1; }

# Lines that ask a file system directly, where a refused question looks like "no".
questions() {
  grep -nE '\b(fs|files|filesystem)::(exists|is_(directory|regular_file|symlink|empty|other)|(symlink_)?status|(recursive_)?directory_iterator)\b|\baccess\(.*_OK' "$@" /dev/null |
    grep -vE '^[^:]*:[0-9]+: *//' || true
}

for line in 'if (fs::exists(file)) return;' 'if (!std::filesystem::is_directory(folder, ignored)) {' \
  'for (const auto& entry : fs::directory_iterator(folder, ignored)) {' 'if (files::is_empty(directory, error)) {' \
  'if (::access(path.c_str(), W_OK) == 0) return;' 'return access(file.c_str(), F_OK) == 0;' \
  'const fs::file_status status = fs::status(path, ignored);'; do
  echo "$line" >"$probe"
  [ -n "$(questions "$probe")" ] || { echo "not noticed: $line"; exit 1; }
done

# These ask by themselves, since
#   - what the kernel does not show in /sys and /proc is unknown to them, and they say so: methods/detection.cc,
#     methods/pci.cc, bench/doctor/tree.cc, harness/results/host_noise.cc, harness/results/machine.cc,
#     bench/lmdb/program.cc, platform/fabric/verbs/device.cc, platform/pmem/mapped/dax_memory.cc
#   - they tidy up what processes left that were killed, as far as they may: mount/make.cc, bench/lmdb/lmdb_driver.cc
#   - they ask for rights, and say the error: platform/host/child_process.cc, library/log_options.cc,
#     program/mojim.cc, systems/mcas/ado/plugins/plugins.cc, harness/run/platform_factory.cc
#   - a file that is there ends it, and any other answer comes again when the file is made:
#     platform/pmem/mapped/pool_file.cc
allowed=$(sed -n '/^# These ask by themselves/,/^allowed=/p' "$0" | grep -oE '[a-z_]+(/[a-z_]+)+\.cc' | sort -u)
for file in $allowed; do
  [ -n "$(questions "$file")" ] || { echo "$file asks nothing any more: take it from the list"; exit 1; }
done
wrong=$(questions $(find $product_folders -name '*.h' -o -name '*.cc' |
  grep -vxF -e platform/base/path_kind.cc -e "$allowed"))
[ -z "$wrong" ] || { echo "a file system is asked elsewhere than by platform/base/path_kind.h:"; echo "$wrong"; exit 1; }
