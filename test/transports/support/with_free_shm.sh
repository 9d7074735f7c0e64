#!/bin/sh
# Runs a command if /dev/shm has room for it; otherwise prints so and is skipped (exit code 4).
#
#   with_free_shm.sh MIB COMMAND...
set -eu
needed=$1
shift
free=$(df -Pk /dev/shm | awk 'NR == 2 { print int($4 / 1024) }')
if [ "$free" -lt "$needed" ]; then
  echo "skipped: needs $needed MiB of /dev/shm, where $free are free"
  exit 4
fi
exec "$@"
