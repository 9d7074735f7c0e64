#!/bin/sh
# Installs kolo's dependencies on Debian 12 or later and Ubuntu 24.04 or later, as root or through sudo.
#
#   cmake/setup.sh [--with GROUP]... [--check]
#
#   groups   base    compiler, CMake, and the libraries that kolo is built with (always)
#            fabrics UCX and libfabric, for the transports ucx and ofi
#            plots   matplotlib, for the plots of reports and benchmarks
#            peers   gloo, Open MPI and MPICH, to compare with kolo
#            fuzz    clang and its fuzzer, for the preset fuzz
#            cross   compiler for aarch64, and QEMU to run its programs, for the preset aarch64
#            tests   ccache and mold: a repeated build takes seconds; for tests: networks and firewalls, pkg-config, dpkg-dev, Doxygen
#            launchers  Open MPI, MPICH, Slurm and an SSH server, which the tests of launchers start; their services are
#                    neither started nor enabled
#            python  Python's headers; nanobind and NumPy from PyPI, in build/python: for the Python package
#            tidy    clang-tidy, for test/run.sh --tidy
#   --check  installs nothing; lists what is missing, and fails if something is
#
# If everything is installed, it returns at once. On other systems it checks the tools and headers themselves, lists the
# missing ones, and stops.
set -eu

base="g++ cmake ninja-build git ca-certificates catch2 libfmt-dev libcli11-dev nlohmann-json3-dev libdnnl-dev libmatio-dev
zlib1g-dev libjpeg-dev libpng-dev python3"
fabrics="libucx-dev libfabric-dev"
plots="python3-matplotlib"
peers="libgloo-dev libopenmpi-dev openmpi-bin libmpich-dev mpich"
fuzz="clang llvm libclang-rt-dev"
cross="g++-aarch64-linux-gnu qemu-user"
tests="ccache mold iproute2 iptables util-linux pkg-config dpkg-dev doxygen"
launchers="openmpi-bin mpich slurm-wlm openssh-client openssh-server iproute2 util-linux"
python="python3-dev python3-venv"
python_packages="nanobind>=2.4 numpy"
tidy="clang-tidy"

policy=/usr/sbin/policy-rc.d # whether Debian's packages may start services; usually absent
lock_seconds=600 # how long another apt or dpkg may hold us up
os_release=/etc/os-release
groups="base"
check=no

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

while [ $# -gt 0 ]; do
  case "$1" in
    --with) [ $# -ge 2 ] || fail "--with needs a group: base, fabrics, plots, peers, fuzz, cross, tests, launchers, python or tidy"; groups="$groups $2"; shift 2 ;;
    --check) check=yes; shift ;;
    --os-release) [ $# -ge 2 ] || fail "--os-release needs a file (it is for tests)"; os_release=$2; shift 2 ;;
    -h | --help) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "unknown option '$1'; see $0 --help" ;;
  esac
done

packages=""
for group in $groups; do
  case "$group" in
    base) packages="$packages $base" ;;
    fabrics) packages="$packages $fabrics" ;;
    plots) packages="$packages $plots" ;;
    peers) packages="$packages $peers" ;;
    fuzz) packages="$packages $fuzz" ;;
    cross) packages="$packages $cross" ;;
    tests) packages="$packages $tests" ;;
    launchers) packages="$packages $launchers" ;;
    python) packages="$packages $python" ;;
    tidy) packages="$packages $tidy" ;;
    *) fail "unknown group '$group'; expected one of base, fabrics, plots, peers, fuzz, cross, tests, launchers, python, tidy" ;;
  esac
done

# True on systems whose package names and versions are known.
is_known_system() {
  [ -r "$os_release" ] || return 1
  id=$(sed -n 's/^ID=//p' "$os_release" | tr -d '"')
  version=$(sed -n 's/^VERSION_ID=//p' "$os_release" | tr -d '"')
  case "$id" in
    debian) [ "${version%%.*}" -ge 12 ] 2>/dev/null ;;
    ubuntu) [ "${version%%.*}" -ge 24 ] 2>/dev/null ;;
    *) return 1 ;;
  esac
}

missing_packages() {
  for package in $packages; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

# -M finds a header and all that it includes, without compiling them, which takes a second each.
has_header() { echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -M -x c++ - >/dev/null 2>&1; }

# On other systems: look for tools and headers, since package names differ.
missing_things() {
  for tool in "${CXX:-c++}" cmake git python3; do
    command -v "$tool" >/dev/null 2>&1 || echo "$tool"
  done
  command -v ninja >/dev/null 2>&1 || command -v ninja-build >/dev/null 2>&1 || echo ninja
  has_header catch2/catch.hpp || has_header catch2/catch_all.hpp || echo "Catch2 (2.13 or 3)"
  has_header fmt/format.h || echo fmt
  has_header CLI/CLI.hpp || echo CLI11
  has_header nlohmann/json.hpp || echo nlohmann-json
  has_header oneapi/dnnl/dnnl.hpp || echo "oneDNN (2.6 or 3)"
  has_header matio.h || echo matio
  has_header zlib.h || echo zlib
  { echo "#include <stdio.h>"; echo "#include <jpeglib.h>"; } | "${CXX:-c++}" -M -x c++ - >/dev/null 2>&1 || echo libjpeg-turbo
  has_header png.h || echo libpng
  case " $groups " in
  *" fabrics "*)
    has_header ucp/api/ucp.h || echo "UCX (1.13 or later)"
    has_header rdma/fabric.h || echo "libfabric (1.17 or later)" ;;
  esac
  case " $groups " in *" plots "*) python3 -c 'import matplotlib' 2>/dev/null || echo "matplotlib (for python3)" ;; esac
  case " $groups " in
  *" python "*)
    [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)/Python.h" ] || echo "Python's headers"
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo "Python's venv" ;;
  esac
  case " $groups " in
  *" fuzz "*)
    if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
        clang++ -fsanitize=fuzzer -x c++ -o /dev/null - 2>/dev/null; then echo "clang++ with -fsanitize=fuzzer"; fi ;;
  esac
  case " $groups " in
  *" cross "*)
    for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
      command -v "$tool" >/dev/null 2>&1 || echo "$tool"
    done ;;
  esac
  case " $groups " in
  *" peers "*)
    has_header gloo/allreduce.h || echo gloo
    command -v mpirun.openmpi >/dev/null 2>&1 || echo "Open MPI (mpirun.openmpi and mpicc.openmpi)"
    command -v mpiexec.mpich >/dev/null 2>&1 || echo "MPICH (mpiexec.mpich and mpicc.mpich)" ;;
  esac
  case " $groups " in
  *" launchers "*)
    for tool in mpirun mpiexec.hydra srun slurmctld slurmd sshd ip unshare; do
      command -v "$tool" >/dev/null 2>&1 || echo "$tool"
    done ;;
  esac
}

# A virtual environment, since systems keep their own Python free of other packages. Without PyPI it is no failure: tests of the
# Python package are then skipped, with this reason.
make_python() {
  case " $groups " in *" python "*) ;; *) return 0 ;; esac
  venv=$(dirname "$0")/../build/python
  if "$venv/bin/python" -c 'import nanobind, numpy' 2>/dev/null; then return 0; fi
  [ "$check" = no ] || fail "missing in build/python: $python_packages"
  say "installing $python_packages in build/python"
  # shellcheck disable=SC2086  # one word a package
  { python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q --disable-pip-version-check $python_packages; } >&2 || {
    rm -rf "$venv"
    say "PyPI cannot be reached (above), so the Python package is not built"
  }
}

in_a_line() { tr '\n' ',' | sed 's/,$//; s/,/, /g'; }

if ! is_known_system; then
  missing=$(missing_things | in_a_line)
  [ -n "$missing" ] || { make_python; exit 0; }
  fail "this is not Debian 12 or Ubuntu 24.04 (or later), so you must install these yourself: $missing"
fi

missing=$(missing_packages)
[ -n "$missing" ] || { make_python; exit 0; }
[ "$check" = no ] || fail "missing: $(echo "$missing" | in_a_line)"

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 ||
    fail "not root, and there is no sudo; as root, run: apt-get install $(echo "$missing" | tr '\n' ' ')"
  as_root="sudo"
fi

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o "DPkg::Lock::Timeout=$lock_seconds" \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@"
}

# apt waits for dpkg's lock, but not for the lock of its own lists.
update_lists() {
  started=$(date +%s)
  while ! output=$(apt update 2>&1); do
    case "$output" in *"Could not get lock"*) ;; *) echo "$output" >&2; return 1 ;; esac
    [ $(($(date +%s) - started)) -lt "$lock_seconds" ] ||
      fail "another apt has held its lists for $lock_seconds s; end it, or try again later"
    sleep 2
  done
}

# New packages start their services, except where this file forbids it.
forbid_services() {
  [ ! -e "$policy" ] || return 0
  trap 'rm -f "$log"; $as_root rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
  $as_root chmod +x "$policy"
}

# Services of packages that were not installed before would start with the system.
disable_services() {
  command -v systemctl >/dev/null 2>&1 || return 0
  for service in $new_services; do
    $as_root systemctl --quiet disable "$service" 2>/dev/null || true
  done
}

say "installing $(echo "$missing" | in_a_line)"
new_services=""
for service in ssh slurmctld slurmd munge; do
  systemctl --quiet is-enabled "$service" 2>/dev/null || new_services="$new_services $service"
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM
forbid_services
update_lists || fail "apt-get update failed (above); is the network up, and are the sources in /etc/apt right?"
# shellcheck disable=SC2086  # one word a package
apt install --no-install-recommends $missing >"$log" 2>&1 || {
  tail -n 30 "$log" >&2
  fail "apt-get install failed (above); try: apt-get install $(echo "$missing" | tr '\n' ' ')"
}
disable_services
make_python
