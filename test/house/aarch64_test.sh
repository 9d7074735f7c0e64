#!/bin/sh
# Test: the code that depends on the processor compiles for aarch64 (vector kernels, spin waits, shared memory). It checks the
# syntax only, with Debian's g++-aarch64-linux-gnu. Exit codes: 0 it compiles, 1 it does not, 77 there is no compiler.
compiler=aarch64-linux-gnu-g++
cd "$(dirname "$0")/../.." || exit 1
if ! command -v $compiler >/dev/null; then
  echo "skipped: no $compiler"
  exit 77
fi
# Only fmt's headers: other headers of this machine are for its own processor.
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
