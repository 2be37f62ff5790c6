# Shared by the scripts of the virtual cluster, which source it.
# shellcheck shell=bash disable=SC2034

vm_folder=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# The tree that is compiled and run; another one may be given.
source_folder=$(readlink -f "${PERDURA_VM_SOURCE:-$vm_folder/../..}")
# Roots, kernels and images, and the compiler's cache: for all source folders of this user.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/perdura-vm
# The build, the NVDIMM and the results of this source folder alone.
: "${PERDURA_VM_WORK:=$source_folder/build-vm}"

die() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

need_command() {
  command -v "$1" >/dev/null || die "there is no '$1'; run scripts/packages --vm"
}

need_root() {
  [ "$(id -u)" -eq 0 ] ||
    die "$1 needs root, since debootstrap and chroot are reserved for it; run it as root or with sudo"
}

# The value of an option, and a whole number that it is to be.
value_of() { # OPTION VALUE...
  [ $# -gt 1 ] && [ -n "$2" ] || die "$1 needs a value"
  value=$2
}
number_of() { # OPTION LEAST VALUE...
  value_of "$1" "${@:3}"
  [[ $value =~ ^[0-9]{1,9}$ ]] && [ "$value" -ge "$2" ] ||
    die "$1 needs a whole number from $2 on, not '$value'"
}

# Prints the comment at the head of the script that is running.
help_if_asked() { # ARGUMENTS...
  case ${1-} in -h | --help) sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0" && exit 0 ;; esac
}
