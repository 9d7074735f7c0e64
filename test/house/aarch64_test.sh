#!/bin/sh
# Does what knows of processors (vector kernels, the pause of a spinning waiter, shared memory) compile for aarch64? Syntax
# alone, by the compiler that Debian's g++-aarch64-linux-gnu has. Exit codes: 0 it does, 1 it does not, 77 no compiler.
compiler=aarch64-linux-gnu-g++
cd "$(dirname "$0")/../.." || exit 1
if ! command -v $compiler >/dev/null; then
  echo "skipped: no $compiler"
  exit 77
fi
# fmt's headers, and no others of this machine's.
include=$(mktemp -d) || exit 1
trap 'rm -r "$include"' EXIT
ln -s /usr/include/fmt "$include/fmt"
failures=0
for file in collectives/reduce/kernels_baseline.cpp collectives/reduce/dispatch.cpp collectives/reduce/cpu_features_other.cpp \
            transports/base/waiting.cpp transports/inproc/transport.cpp transports/shm/transport.cpp; do
  $compiler -std=c++20 -Wall -Wextra -Werror -fsyntax-only -DFMT_HEADER_ONLY -I. -isystem "$include" $file ||
    failures=$((failures + 1))
done
[ $failures -eq 0 ]
