#!/bin/sh
# Runs the tests in a fresh clone on a bare system (chroot).
#
#   cmake/fresh.sh [--mirror URI] [--minutes N] [--keep] SUITE [-- COMMAND...]
#
#   SUITE      bookworm, trixie or noble
#   --mirror   package mirror of the suite; default: the first of this machine's apt sources that has the suite
#   --minutes  the timeout, 90 by default
#   --keep     keeps the root and prints its path
#   COMMAND    command to run in the clone; default: ./test/run.sh
#
# The root is debootstrap's variant minbase, in a directory under ${TMPDIR:-/tmp} (about 3 GB); the clone is of HEAD.
# Everything runs in its own mount and process namespaces. When they end, for any reason, no mount and no process
# is left, and the directory is removed. If KOLO_TEST_DATA is set, that directory is visible inside, read-only.
# Needs root, debootstrap, and a machine that allows mounts.
set -eu

say() { echo "fresh: $*" >&2; }
fail() { say "$*"; exit 1; }

# --- inside the namespaces: arguments are the root, the suite, the mirror, and the command -----------------------------

# The settings with which this machine's apt reaches its mirror (proxy, checks of dates) are needed inside, too.
copy_apt_settings() {
  apt-config dump --format '%F "%v";%n' Acquire |
    grep -E '^Acquire::(http|https|Retries|Check-Valid-Until|Check-Date|Languages)\b' >"$1/etc/apt/apt.conf.d/90fresh" || true
  case "$2" in
    https:*)
      mkdir -p "$1/etc/ssl/certs" "$1/usr/local/share/ca-certificates"
      cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
      cp -rL /usr/local/share/ca-certificates/. "$1/usr/local/share/ca-certificates/" ;;
  esac
}

make_root() {
  root=$1 suite=$2 mirror=$3
  variant=""
  set -- --variant=minbase
  if [ "$suite" = noble ]; then
    keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    [ -r "$keyring" ] || fail "no $keyring to check Ubuntu's packages with; install ubuntu-keyring"
    set -- "$@" --keyring="$keyring" --components=main,universe
    # All Ubuntu releases share one script; older versions of debootstrap do not know this name.
    [ -e /usr/share/debootstrap/scripts/noble ] || variant=gutsy
  fi
  say "making a bare $suite from $mirror"
  # shellcheck disable=SC2086  # no script named: no argument
  debootstrap "$@" "$suite" "$root" "$mirror" $variant >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    fail "debootstrap failed (above)"
  }
  copy_apt_settings "$root" "$mirror"
}

mount_kernel_parts() {
  mount -t proc proc "$1/proc"
  mount -t sysfs -o ro sysfs "$1/sys"
  mount --rbind /dev "$1/dev"
  mount -t tmpfs -o size=64m tmpfs "$1/dev/shm" # no more than a container has
  if [ -n "${KOLO_TEST_DATA:-}" ]; then
    mkdir -p "$1/data"
    mount --bind -o ro "$KOLO_TEST_DATA" "$1/data"
  fi
}

run_inside() {
  root=$1 suite=$2 mirror=$3
  shift 3
  make_root "$root" "$suite" "$mirror"
  mv "$root.clone" "$root/kolo"
  mount_kernel_parts "$root"
  say "running $* in it"
  data=""
  [ -z "${KOLO_TEST_DATA:-}" ] || data=KOLO_TEST_DATA=/data
  # shellcheck disable=SC2086  # no data: no argument
  exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} $data \
    /bin/sh -c 'cd /kolo && exec "$@"' sh "$@"
}

if [ "${1:-}" = --inside ]; then
  shift
  run_inside "$@"
fi

# --- outside -----------------------------------------------------------------------------------------------------------

minutes=90
mirror=""
keep=no
suite=""
while [ $# -gt 0 ]; do
  case "$1" in
    --mirror) mirror=${2:?"--mirror needs a URI"}; shift 2 ;;
    --minutes) minutes=${2:?"--minutes needs a number"}; shift 2 ;;
    --keep) keep=yes; shift ;;
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --) shift; break ;;
    -*) fail "unknown option '$1'; see $0 --help" ;;
    *) [ -z "$suite" ] || fail "one suite at a time: '$suite' or '$1'?"; suite=$1; shift ;;
  esac
done
case "$suite" in
  bookworm | trixie | noble) ;;
  "") fail "which suite? bookworm, trixie or noble; see $0 --help" ;;
  *) fail "unknown suite '$suite'; expected one of bookworm, trixie, noble" ;;
esac
[ $# -gt 0 ] || set -- ./test/run.sh
[ "$(id -u)" -eq 0 ] || fail "needs root, for chroot and mounts; try: sudo $0 $suite"
command -v debootstrap >/dev/null 2>&1 || fail "debootstrap is missing; try: apt-get install debootstrap"
unshare --mount --pid --fork true 2>/dev/null || fail "this machine does not allow mount and process namespaces"

directory=$(mktemp -d "${TMPDIR:-/tmp}/kolo-fresh.XXXXXX")
child=""
# shellcheck disable=SC2317  # reached through the trap
clean_up() {
  trap '' INT TERM HUP
  [ -z "$child" ] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
  if [ "$keep" = yes ]; then
    say "the root is kept: $directory/root"
  else
    rm -rf --one-file-system "$directory"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

find_mirror() {
  # shellcheck disable=SC2016  # apt expands it
  for uri in $(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | sort -u); do
    if /usr/lib/apt/apt-helper download-file "${uri%/}/dists/$suite/Release" "$directory/Release" >/dev/null 2>&1; then
      echo "${uri%/}"
      return
    fi
  done
}
[ -n "$mirror" ] || mirror=$(find_mirror)
[ -n "$mirror" ] || fail "none of this machine's apt sources has '$suite'; name one that has: --mirror URI"

# debootstrap does not read apt's configuration.
eval "$(apt-config shell apt_http Acquire::http::Proxy apt_https Acquire::https::Proxy)"
[ -z "${apt_http:-}" ] || export http_proxy="$apt_http"
[ -z "${apt_https:-}" ] || export https_proxy="$apt_https"

repository=$(git -C "$(dirname "$0")" -c safe.directory='*' rev-parse --show-toplevel)
[ -z "$(git -C "$repository" -c safe.directory='*' status --porcelain)" ] ||
  say "note: uncommitted changes in $repository are not tested"
git -c safe.directory='*' clone --quiet --no-hardlinks "$repository" "$directory/root.clone"

timeout --kill-after=5 "${minutes}m" unshare --mount --pid --fork --kill-child \
  /bin/sh "$0" --inside "$directory/root" "$suite" "$mirror" "$@" &
child=$!
status=0
wait "$child" || status=$?
child=""
case "$status" in 124 | 137) say "timed out after $minutes minutes" ;; esac
exit "$status"
