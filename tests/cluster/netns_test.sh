#!/usr/bin/env bash
# A sweep over three hosts gives the same bytes as one process; and when a process dies, or a host is cut
# off, the run ends soon, says which and what is kept, and has kept it.
#
#   netns_test.sh PERDURA MPIRUN
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

if [ -z "${ON_HOST-}" ]; then
  # Here, since processes have other numbers among the hosts.
  . "$here/../support/temporary_folder.sh" netns
  export folder
  code=0
  "$here/netns_hosts.sh" "$0" "$@" || code=$?
  exit "$code"
fi
perdura=$1
mpirun=$2
cd "$folder"

printf 'node%d slots=1\n' 1 2 3 >hosts
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$ON_HOST
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
# Its session folders are named by host and process, which are the same in another run of this test.
export OMPI_MCA_orte_tmpdir_base=$folder
# A second, the default, may be too short to write the results when the machine does other things, too.
export OMPI_MCA_odls_base_sigkill_timeout=3
# The sanitizers must not report these: Open MPI does not free everything at its end, and takes its locks in two orders.
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=detect_deadlocks=0

small=(run erda-latency --set workload.operations=300 --set workload.warmup=0)
on_three_hosts() {
  "$ON_HOST" node1 "cd $folder; exec $mpirun --bind-to none --hostfile hosts -n 3 $perdura $*"
}

fail() {
  echo "FAILED: $*"
  [ ! -e log ] || tail -n 60 log
  exit 1
}

# The names of the hosts are those that the ranks see.
[ "$("$ON_HOST" node1 "$mpirun --hostfile $folder/hosts -n 3 hostname" | sort | tr '\n' ' ')" = \
  "node1 node2 node3 " ] || fail "three hosts"

"$perdura" "${small[@]}" --quiet --out one
on_three_hosts "${small[*]}" --quiet --out three >log 2>&1 || fail "a run on three hosts"
for file in points.csv histograms.csv experiment.toml; do
  cmp "one/$file" "three/$file" || fail "$file"
done
echo "ok: the same bytes on three hosts"

code=0
on_three_hosts run erda-shm --out shm >log 2>&1 || code=$?
[ "$code" -eq 2 ] && grep -q '^perdura: .*: platform shm takes one host, but there are rank 0 on host node1 and rank 1 on host node2; start all' log ||
  fail "shared memory of several hosts: exit code $code"
echo "ok: shared memory of several hosts is refused"

# The hostfile begins with node1.
site() {
  printf 'name = "lab"\n'
  printf '[[host]]\nname = "%s"\nrole = "server"\n' "$1"
  shift
  printf '[[host]]\nname = "%s.example.org"\nrole = "client"\n' "$@"
}
expect_site_refused() {
  code=0
  on_three_hosts "${small[*]}" --site ./lab.toml --out site >log 2>&1 || code=$?
  [ "$code" -eq 2 ] && grep -q "^perdura: ./lab.toml: $1" log || fail "another site: exit code $code"
}
site node2 node1 node3 >lab.toml
expect_site_refused 'rank 0 is on host node1, but the server is node2; '
site node1 node2 >lab.toml
expect_site_refused "rank 2 is on host node3, which is not one of this site's; "
site node1 node2 node3 >lab.toml
on_three_hosts "${small[*]}" --site ./lab.toml --quiet --out site >log 2>&1 || fail "a run at a site"
echo "ok: ranks are where the site says"

# The process of a rank: a child of its host's daemon.
rank_on() {
  local pid
  for pid in $(ip netns pids "$1"); do
    [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$perdura")" ] || echo "$pid"
  done
}

now_ms() { date +%s%3N; }

# disturb NAME SECONDS LINE COMMAND...: in the middle of a run without end, COMMAND. LINE must appear
# within SECONDS, the run must end with an error, and what the line says is kept must be there.
disturb() {
  local name=$1 seconds=$2 line=$3
  shift 3
  : >log
  on_three_hosts "${small[*]}" --set repetitions=2500 --heartbeat $heartbeat --out "$name" >log 2>&1 &
  local job=$!
  # Each of the three ranks has ended its first 80 points, however long that takes on a machine that is busy.
  # Meanwhile the root has heard of each which point it runs: a rank says so every 0.4 s.
  until grep -q 'repetition=240:' log && grep -q 'repetition=241:' log && grep -q 'repetition=242:' log; do
    kill -0 "$job" 2>/dev/null || fail "$name: has ended before anything was done to it"
    sleep 0.05
  done
  local began=$(now_ms)
  "$@"
  until grep -Eq "$line" log; do
    [ "$(now_ms)" -lt $((began + seconds * 1000)) ] || fail "$name: no line '$line' in $seconds s"
    sleep 0.05
  done
  local said=$(($(now_ms) - began))
  while kill -0 "$job" 2>/dev/null; do
    [ "$(now_ms)" -lt $((began + 60000)) ] || fail "$name: does not end"
    sleep 0.05
  done
  local code=0
  wait "$job" || code=$?
  [ "$code" -ne 0 ] || fail "$name: exit code 0"
  local ended=$(($(now_ms) - began)) kept
  kept=$(sed -n "s/^perdura: .*; \([0-9]*\) of [0-9]* points are in $name; perdura run --continue $name\$/\1/p" log)
  [ -n "$kept" ] || fail "$name: does not say what is kept"
  [ "$(grep -c ',all,valid,' "$name/points.csv")" -eq "$kept" ] || fail "$name: has not kept $kept points"
  grep -q '"status": "interrupted"' "$name/manifest.json" || fail "$name: status"
  echo "ok: $name: said so after $said ms, ended with exit code $code after $ended ms, $kept points kept"
}

kill_rank() { kill "-$2" "$(rank_on "$1")"; }
# Long enough for a thread that sends ten times as often to be heard on a machine that is busy.
heartbeat=4
silent=" on host node3 has not been heard of for $heartbeat s, last while running point [0-9]+ \\("
# Whichever is sooner: mpirun, which ends the others when one has died, or the heartbeat.
disturb killed 40 '^perdura: .*rank 2 on host node3 (does not answer|has not been heard of)' \
  kill_rank node3 KILL
disturb crashed 40 '^perdura: rank 1 on host node2 died of SIGABRT, last while running point [0-9]+ \(' \
  kill_rank node2 ABRT
disturb stopped 40 "^perdura: rank 2$silent" kill_rank node3 STOP
disturb cut-off 40 "^perdura: rank 2$silent" ip link set port3 down

# The rank that was cut off has ended itself, too.
while [ -n "$(rank_on node3)" ]; do sleep 0.05; done
echo "ok: the rank that was cut off has ended itself"
