#!/usr/bin/env bash
# Runs the commands of the README and of docs/, read from the installed texts, with the installed programs, as a reader
# would: a document is a session, from top to bottom, in a folder of its own. Each line of a fence ```sh is a command,
# except those that continue a comment. If a command fails or does not exist, the script reports the document's line and
# ends with 1.
#
# The documents themselves say what a command needs or does, and this script follows that:
# - A fence below a paragraph that begins with "Needs" (a device, hosts, the source folder, ...) is not run. Its
#   commands of perdura must still exist, with all of their options, and so must programs of the source folder.
# - "exit code N" in the comment of a command: it may end with N, too.
# - /opt/perdura stands for the prefix.
# - A fence ```text that follows commands shows their output: each of its lines must be a line of the output, unless one
#   of these commands was not run or did not end in time. The remaining time, "(0:01 left)", is not compared.
# - A command behind a prompt, "$ perdura list", in another fence would be neither run nor compared with what is below
#   it, so it is a failure.
# The script interrupts long commands of perdura by SIGINT after PERDURA_TEST_SECONDS seconds (6); they must then end by
# themselves.
# Usage: tests/scripts/documents.sh PREFIX [DOCUMENT...]     (README.md, docs/claims.md, ...; default: all)
set -uo pipefail
if [ $# -eq 0 ] || [ ! -x "$1/bin/perdura" ]; then
  echo "usage: tests/scripts/documents.sh PREFIX [DOCUMENT...]" >&2
  exit 2
fi
prefix=$(cd "$1" && pwd)
shift
source=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${PERDURA_TEST_SECONDS:-6}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod a+rx "$place"  # plugins run as a user of their own
export PATH=$prefix/bin:$PATH HOME=$place TERM=dumb
unset PERDURA_HOME
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
texts=$prefix/share/doc/perdura

# Prints FILE TAB LINE TAB NEEDS TAB COMMAND for each command below the folder of texts. NEEDS is "-" if it needs
# nothing. For a line of shown output NEEDS is "shown", and COMMAND is the line. A line "begins" precedes each fence's
# commands.
commands() {
  local documents=("$@") file
  [ $# -gt 0 ] || mapfile -t documents < <(cd "$texts" && find README.md docs -name '*.md' | LC_ALL=C sort)
  for file in "${documents[@]}"; do
    awk -v file="$file" '
      /^ *```/ {
        if (fenced) { fenced = 0; paragraph = ""; next }
        fenced = 1
        shell = $0 ~ /^ *```sh *$/
        shown = $0 ~ /^ *```text *$/ && after_shell && paragraph == ""
        after_shell = shell
        if (shell) print file "\t" FNR "\tbegins\t"
        needs = paragraph ~ /^Needs / ? paragraph : "-"
        next
      }
      fenced && !shell && /^[ \t]*\$ / { print file "\t" FNR "\tprompt\t" $0; next }
      fenced && shell && !/^[ \t]*(#|$)/ { print file "\t" FNR "\t" needs "\t" $0 }
      fenced && shown && !/^[ \t]*$/ { print file "\t" FNR "\tshown\t" $0 }
      fenced { next }
      /^[ \t]*$/ { between = 1; next }
      between { between = 0; paragraph = "" }
      { paragraph = paragraph (paragraph == "" ? "" : " ") $0 }' "$texts/$file"
  done
}

failures=0 ran=0 interrupted=0 left=0 shown=0
# "yes" as long as all commands of the current fence have ended by themselves.
complete=yes
fail() {
  echo "documents: $1" >&2
  [ ! -s "$place/said" ] || tail -n 5 "$place/said" | sed 's/^/    /' >&2
  failures=$((failures + 1))
}

# Checks that a command that is not run exists, and so do its options.
look_at() {
  local where=$1 command=$2 words word help
  : >"$place/said"
  case $command in
    scripts/* | tests/*) [ -x "$source/${command%% *}" ] || fail "$where: there is no such program: $command" ;;
  esac
  command=${command%% #*}
  [[ $command =~ (^|[^a-z/-])perdura\ +([a-z].*) ]] || return 0
  # Words after " -- " belong to another program.
  read -ra words <<<"${BASH_REMATCH[2]%% -- *}"
  local call=()
  case ${words[0]} in fs | mcas | mojim) call=("${words[@]:0:2}") ;; *) call=("${words[0]}") ;; esac
  help=$(perdura "${call[@]}" --help 2>"$place/said") || { fail "$where: there is no such command: $command"; return; }
  for word in "${words[@]}"; do
    [[ $word == -[a-z-]* ]] || continue
    grep -qE -- "(^|[ ,])${word%%=*}([ ,]|$)" <<<"$help" || fail "$where: perdura ${call[*]} has no option $word"
  done
}

run() {
  local where=$1 command=$2 limit=300 code=0
  [[ ! $command =~ (^|\ )perdura\  ]] || limit=$seconds
  # A program in the background of a script ignores SIGINT; these must not.
  env --default-signal=INT timeout --signal=INT --kill-after=60 "$limit" bash -c "$command" >"$place/said" 2>&1 </dev/null ||
    code=$?
  ran=$((ran + 1))
  sed -E 's/ \([0-9:]+ left\)//' "$place/said" >>"$place/printed"
  if [ $code -eq 124 ] && [ "$limit" = "$seconds" ]; then
    interrupted=$((interrupted + 1))
    complete=no
    echo "$where: ended by SIGINT after $seconds s: $command"
  elif [ $code -ne 0 ] && ! { [[ $command =~ exit\ code\ ([0-9]) ]] && [ "${BASH_REMATCH[1]}" = $code ]; }; then
    fail "$where: ended with $code: $command"
  fi
}

commands "$@" >"$place/commands"
[ -s "$place/commands" ] || { echo "documents: no command below $texts" >&2; exit 1; }
while IFS=$'\t' read -r file line needs command <&3; do
  case $needs in
    begins)
      complete=yes
      : >"$place/printed"
      continue
      ;;
    prompt)
      : >"$place/said"
      fail "$file:$line: is not run; write it into a fence \`\`\`sh, and its output below into one of \`\`\`text: $command"
      continue
      ;;
    shown)
      [ $complete = yes ] || continue
      shown=$((shown + 1))
      grep -qxF -- "$command" "$place/printed" || fail "$file:$line: was not printed: $command"
      continue
      ;;
  esac
  command=${command//\/opt\/perdura/$prefix}
  if [ "$needs" != - ]; then
    left=$((left + 1))
    complete=no
    look_at "$file:$line" "$command"
    continue
  fi
  folder=$place/${file//\//-}
  mkdir -p "$folder"
  cd "$folder" || exit 1
  run "$file:$line" "$command"
done 3<"$place/commands"
cut -f 3 "$place/commands" | grep -vxE -- '-|begins|prompt|shown' | sort | uniq -c | sed 's/^ *\([0-9]*\) /not run, \1 commands: /'
echo "documents: $ran commands were run, $interrupted of them ended by SIGINT, $left not run, $shown lines of output compared, $failures failures"
[ $failures -eq 0 ]
