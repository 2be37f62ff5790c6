#!/usr/bin/env bash
# installed.sh CMAKE BUILD: installs everything from BUILD, moves the prefix, and uses the program there from
# another folder. What it finds must be the prefix' own.
set -euo pipefail
cmake=$1 build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
fail() {
  echo "$1" >&2
  exit 1
}

# A prefix may be relative.
(cd "$place" && "$cmake" --install "$build" --prefix first >/dev/null)
mv "$place/first" "$place/prefix"
mkdir "$place/elsewhere"
cd "$place/elsewhere"
unset PERDURA_HOME
perdura=$place/prefix/bin/perdura

"$perdura" list --json >list.json
files=$(grep -c '"file": ' list.json) || true
own=$(grep -c "\"file\": \"$place/prefix/share/perdura/" list.json) || true
[ "$files" -gt 20 ] && [ "$files" = "$own" ] || fail "of $files files $own are the prefix' own"
"$perdura" run erda-latency --quiet --set workload.operations=300 --set workload.warmup=0 \
  --set 'matrix.workload=["workloada"]' --set 'matrix.value_size=[16]' --out out >/dev/null
"$perdura" report out >/dev/null 2>&1
grep -q '<svg' out/report/index.html || fail "the report has no figure"
# Into a file: grep -q ends at the first match, and what still writes into a pipe then fails.
"$perdura" claims out >claims.txt
grep -q '^erda-16-erda ' claims.txt || fail "there are no claims"
# Measured results stand before the rest.
awk 'NR > 1 && NF == 0 { exit } NR > 1 && /not measured/ { rest = 1 } NR > 1 && !/not measured/ && rest { exit 1 }' \
  claims.txt || fail "claims that were measured stand among those that were not"
# The same by the programs that only read results, which need not be where results can be made.
"$place/prefix/bin/perdura-report" out --out read >/dev/null 2>&1
# The page names the folder's files relative to where it is.
"$perdura" report out --out made >/dev/null 2>&1
diff -r read made || fail "perdura-report draws something else than perdura report"
"$place/prefix/bin/perdura-claims" out | diff - claims.txt || fail "perdura-claims answers something else"
"$place/prefix/bin/perdura-compare" out out >compared.txt || fail "perdura-compare finds a run worse than itself"
"$perdura" compare out out | diff - compared.txt || fail "perdura-compare answers something else"
for program in report claims compare; do
  ! ldd "$place/prefix/bin/perdura-$program" | grep -E 'libmpi|libibverbs|librdmacm' ||
    fail "perdura-$program needs what makes results"
done
# From the prefix it is: without its scripts there are none.
mv "$place/prefix/share/perdura/plots" "$place/plots"
! "$perdura" report out >/dev/null 2>&1 || fail "figures were drawn by scripts of another place"
mv "$place/plots" "$place/prefix/share/perdura/plots"

# shellcheck source=/dev/null
. "$place/prefix/share/bash-completion/completions/perdura"
completed() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _perdura
  echo " ${COMPREPLY[*]} "
}
[[ $(completed "$perdura" pl) == " plan " ]] || fail "commands are not completed"
[[ $(completed "$perdura" run erda-lat) == " erda-latency " ]] || fail "experiments are not completed"
[[ $(completed "$perdura" run --heart) == " --heartbeat " ]] || fail "options are not completed"
[[ $(completed "$perdura" run --profile erda) == " erda-connectx3 " ]] || fail "profiles are not completed"
[[ $(completed "$perdura" advise --domain "") == " dmp mhp wsp " ]] || fail "choices are not completed"
[[ $(completed "$perdura" fs mkf) == " mkfs " ]] || fail "commands of commands are not completed"
[[ $(completed "$perdura" fs mkfs --si) == " --size " ]] || fail "options of commands of commands are not completed"
grep -q -- "-a run " "$place/prefix/share/fish/vendor_completions.d/perdura.fish" || fail "nothing for fish"

# Everything that the installed documents point to is installed: each line is FILE:](LINK. Code has "](std::string x)".
(cd "$place/prefix" && find . -name '*.md' -exec grep -oHE '\]\([^)#: ]+[)#]' {} + | sed 's/.$//') >links.txt
while IFS= read -r link; do
  document=${link%%:*}
  [ -e "$place/prefix/${document%/*}/${link#*](}" ] || fail "$document points to ${link#*](}, which is not there"
done <links.txt
for kind in docs/systems/erda.md examples/ perdura/experiments include/perdura.h; do
  grep -qF "$kind" links.txt || fail "no document points to $kind"
done

if command -v help2man >/dev/null; then
  for page in perdura perdura-run perdura-compare perdura-fs perdura-fs-mkfs perdura-mcas-serve perdura-mojim-run; do
    [ -s "$place/prefix/share/man/man1/$page.1" ] || fail "there is no man page $page"
  done
  for page in "$place/prefix/share/man/man1/"*.1; do
    name=$(basename "$page" .1)
    grep -q "^\.TH ${name^^} \"\?1\"\? " "$page" || fail "the title of $page is not its command's"
    grep -q "^${name//-/.*-} .*- [A-Z]" "$page" || fail "$page does not say what $name does"
    # An option whose description does not begin on a line of its own.
    ! grep -A 1 '^\.HP' "$page" || fail "options of $page run into their descriptions"
  done
  grep -q -- 'size' "$place/prefix/share/man/man1/perdura-fs-mkfs.1" || fail "the man page of fs mkfs lacks options"
  for page in "$place/prefix/share/man/man1/"*.1; do
    grep -q '^\.SH "EXIT STATUS"' "$page" || fail "$page does not say what the command ends with"
  done
  grep -q '^\.SH EXAMPLES' "$place/prefix/share/man/man1/perdura-run.1" || fail "the man page of run has no examples"
  grep -q 'heartbeat' "$place/prefix/share/man/man1/perdura-run.1" || fail "the man page lacks options"
fi
