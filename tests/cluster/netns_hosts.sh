#!/usr/bin/env bash
# Runs a command among three hosts, node1 to node3, which are network namespaces on a switch, and takes
# them away again however it ends: all of it lives in namespaces that die with this process.
#
#   netns_hosts.sh COMMAND...      exit code 77, after a line, if this machine does not allow it
#
# In the command's environment $ON_HOST runs a command on a host: $ON_HOST node2 hostname
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin

if [ "${1-}" != --inside ]; then
  namespaces=(--net --mount --pid --ipc --fork --kill-child --mount-proc)
  [ "$(id -u)" -eq 0 ] || namespaces+=(--map-root-user)
  command -v ip >/dev/null || { echo "skipped: no 'ip'; install iproute2"; exit 77; }
  if ! problem=$(unshare "${namespaces[@]}" ip link add switch type bridge 2>&1); then
    echo "skipped: no network namespaces here: $problem"
    exit 77
  fi
  exec unshare "${namespaces[@]}" "$0" --inside "$@"
fi
shift

mkdir -p /run/netns
mount -t tmpfs hosts /run/netns
folder=/run/netns/.on-host
mkdir "$folder"
# Open MPI calls it in place of ssh.
cat >"$folder/on-host" <<'AGENT'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
AGENT
chmod +x "$folder/on-host"
export ON_HOST=$folder/on-host

ip link add switch type bridge
ip link set switch up
for host in 1 2 3; do
  ip netns add "node$host"
  ip link add "port$host" type veth peer name eth0 netns "node$host"
  ip link set "port$host" master switch up
  ip -n "node$host" address add "10.77.0.$host/24" dev eth0
  ip -n "node$host" link set eth0 up
  ip -n "node$host" link set lo up
done

# Not exec: the first process of a namespace has to outlive its children.
"$@"
