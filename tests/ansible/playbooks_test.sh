#!/usr/bin/env bash
# The playbooks are well formed; provisioning this machine in check mode changes nothing and would do what
# it says; a mistake is told; and a sweep that is run by the playbook gives the bytes of one run by hand.
#
#   playbooks_test.sh SOURCE BUILD
set -euo pipefail
if ! command -v ansible-playbook >/dev/null; then
  echo "skipped: no ansible-playbook; scripts/packages --cluster installs it"
  exit 77
fi
source=$1
build=$2
perdura=$build/perdura
. "$source/tests/support/temporary_folder.sh" ansible
export ANSIBLE_LOCAL_TEMP=$folder ANSIBLE_REMOTE_TEMP=$folder ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
export ANSIBLE_CONFIG=$source/ansible/ansible.cfg
cd "$source/ansible"

fail() {
  echo "FAILED: $*"
  tail -n 40 "$folder/log"
  exit 1
}

cat >"$folder/this.yml" <<INVENTORY
all:
  vars:
    perdura_build: $build
    perdura_home: $folder/home
  children:
    servers: {hosts: {localhost: {ansible_connection: local, slots: 2}}}
    clients: {hosts: {}}
INVENTORY

ansible-playbook -i inventory/example.yml --syntax-check *.yml >"$folder/log" 2>&1 || fail "the example's inventory"
echo "ok: syntax"

# The list of packages has one source.
play() { ansible-playbook -i "$folder/this.yml" "$@" >"$folder/log" 2>&1; }
state() { ls -lR --time-style=full-iso /etc/security/limits.d /etc/sysctl.d; getent passwd; dpkg-query -W; }
state >"$folder/before"
if [ "$(id -u)" -eq 0 ] && [ -n "$(ls -A /var/lib/apt/lists)" ]; then
  play provision.yml --check --diff || fail "provisioning in check mode"
  grep -q '^+vm.nr_hugepages = 1024' "$folder/log" || fail "huge pages"
  grep -q '^+perdura hard memlock unlimited' "$folder/log" || fail "memlock"
else
  echo "not checked without root and apt's lists: packages, limits, user"
  play provision.yml --check --tags program || fail "the program in check mode"
fi
! grep -q 'ndctl create-namespace' "$folder/log" || fail "persistent memory was touched without being asked"
state >"$folder/after"
cmp "$folder/before" "$folder/after" || fail "check mode changed something"
[ ! -e "$folder/home" ] || fail "check mode made $folder/home"
echo "ok: check mode"

if play provision.yml --tags program -e perdura_build="$folder/nosuch"; then fail "no program"; fi
grep -q "$folder/nosuch holds no build; build it first" "$folder/log" || fail "no program: no line"

# mpirun is told the slots and addresses of the inventory, in either format.
cat >"$folder/hosts.yml" <<PLAY
- hosts: servers[0]
  gather_facts: false
  connection: local
  tasks:
    - ansible.builtin.include_vars: $source/ansible/roles/perdura/defaults/main.yml
    - ansible.builtin.copy: {content: "{{ perdura_ranks }} ranks\n{{ perdura_hostfile }}", dest: $folder/hosts}
PLAY
gives() {  # INVENTORY LINE...
  ansible-playbook -i "$1" "$folder/hosts.yml" -e experiment=x >"$folder/log" 2>&1 || fail "hosts of $1"
  diff <(printf '%s\n' "${@:2}") "$folder/hosts" >>"$folder/log" || fail "hosts of $1 differ"
}
cat >"$folder/addresses.yml" <<'INVENTORY'
all:
  children:
    servers: {hosts: {big: {ansible_host: 192.0.2.1, ansible_port: 2200}}}
    clients: {hosts: {small: {ansible_host: 192.0.2.2, slots: "3"}, named: }}
INVENTORY
gives "$folder/addresses.yml" '5 ranks' '192.0.2.1 slots=1' '192.0.2.2 slots=3' 'named slots=1'
printf '%s\n' '[servers]' s '[clients]' 'c[1:2]' '[clients:vars]' slots=4 >"$folder/text.ini"
gives "$folder/text.ini" '9 ranks' 's slots=1' 'c1 slots=4' 'c2 slots=4'
printf '%s\n' '[servers]' 's slots=2' '[clients]' s c >"$folder/both.ini"
gives "$folder/both.ini" '5 ranks' 's slots=4' 'c slots=1'
printf '%s\n' '[servers]' s >"$folder/alone.ini"
gives "$folder/alone.ini" '1 ranks' 's slots=1'
echo "ok: hosts and ranks"
if command -v ansible-lint >/dev/null; then
  ansible-lint --offline --nocolor >"$folder/log" 2>&1 || fail "ansible-lint"
  echo "ok: ansible-lint"
else
  echo "not checked without ansible-lint: the style of the playbooks"
fi

as_me=(-e ansible_become=false -e perdura_user="$(id -un)")
if play run.yml "${as_me[@]}"; then fail "no experiment"; fi
grep -q 'name an experiment: -e experiment=erda-latency' "$folder/log" || fail "no experiment: no line"
echo "ok: mistakes are told"

# For real, without root: the program's folder, and a sweep of two ranks.
small='--set workload.operations=300 --set workload.warmup=0'
play provision.yml run.yml --skip-tags packages,limits,ssh,pmem "${as_me[@]}" -e experiment=erda-latency \
  -e "{perdura_arguments: '$small'}" -e results="$folder/results" || fail "copying the program and running a sweep"
"$perdura" run erda-latency $small --quiet --out "$folder/by-hand" >/dev/null
for file in points.csv histograms.csv experiment.toml; do
  cmp "$folder/by-hand/$file" "$folder/results/$file" || fail "$file"
done
[ -e "$folder/results/manifest.json" ] || fail "manifest.json"
echo "ok: a sweep, with the same bytes"

# All that is installed is there, and works from there.
"$folder/home/bin/perdura" list --json >"$folder/list" || fail "perdura list"
grep -q "\"file\": \"$folder/home/share/perdura/experiments/erda-latency.toml\"" "$folder/list" ||
  fail "the copied program takes other files than those copied"
for file in bin/perdura-ado bin/perdura-report lib/perdura/libperdura_mojim.so lib/perdura/perdura-lmdb; do
  [ -e "$folder/home/$file" ] || [ ! -e "$build/${file##*/}" ] || fail "$file was not copied"
done
echo "ok: what is installed"
