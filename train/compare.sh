#!/bin/sh
# Compares data-parallel strategies, from a bare machine to a report, in one command.
#
#   train/compare.sh [options of kolo-train compare]      --help lists them
#
# Installs what is missing, builds kolo-train, and runs `kolo-train compare`. Paths in options, and the report folder, are
# relative to where you are.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
log=$build/build.log

for word in "$@"; do
  case "$word" in --help | -h) ;; *) continue ;; esac
  if [ -x "$build/bin/kolo-train" ]; then exec "$build/bin/kolo-train" compare --help; fi
  sed -n '2,7s/^# \{0,1\}//p' "$0"
  echo "(kolo-train is not built yet; run this without --help once, and --help will list its options)"
  exit 0
done

# What kolo-train would refuse after the whole build. A test holds these against its --help.
with_value='--strategies --strategy --ranks --n_gpus --n-gpus --ps-mode --ps_mode --servers --ps-optimizer --ps_optimizer --seeds
  --dataset --train-size --train_size --test-size --test_size --model --stem --batch-size --batch_size --global-batch --global_batch
  --epochs --steps --seed --lr --momentum --weight-decay --weight_decay --warmup-epochs --warmup_epochs --lr-schedule --lr_schedule
  --transport --shape --backend --threads --bucket-bytes --bucket_bytes --first-bucket-bytes --first_bucket_bytes --timeout
  --eval-every --eval_every --hash-every --hash_every --skip-steps --skip_steps --report'
without_value='--progress-thread --no-progress-thread --no-report'
models='resnet50 small'
stems='imagenet cifar'
schedules='constant cosine'

refuse() {
  echo "kolo: $1; train/compare.sh --help lists the options" >&2
  exit 2
}

# is_in WORD LIST
is_in() {
  # shellcheck disable=SC2086,SC2116 # of words on several lines it makes one line
  case " $(echo $2) " in *" $1 "*) ;; *) return 1 ;; esac
}

# require_one_of NAME VALUE LIST
require_one_of() {
  is_in "$2" "$3" || refuse "$1: unknown '$2'; there are $3"
}

check_words() {
  while [ $# -gt 0 ]; do
    word=$1
    shift
    case "$word" in --?*) ;; *) continue ;; esac
    name=${word%%=*}
    if is_in "$name" "$without_value"; then continue; fi
    is_in "$name" "$with_value" || refuse "there is no option '$name'"
    case "$word" in
      *=*) value=${word#*=} ;;
      *)
        [ $# -gt 0 ] || refuse "$name needs a value"
        value=$1
        shift
        ;;
    esac
    case "$name" in
      --model) require_one_of "$name" "$value" "$models" ;;
      --stem) require_one_of "$name" "$value" "$stems" ;;
      --lr-schedule | --lr_schedule) require_one_of "$name" "$value" "$schedules" ;;
    esac
  done
}
check_words "$@"

"$root/cmake/setup.sh" --with plots
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi

# How far ninja has come, of a line "[12/340] ...": on a terminal in one line that is replaced, else at each tenth.
show() {
  place=${1%%]*}
  if [ -t 2 ]; then
    printf '\rkolo: building %s] ' "$place" >&2
    return
  fi
  place=${place#?}
  case "${place%/*}${place#*/}" in '' | *[!0-9]*) return ;; esac
  if [ "${place#*/}" -eq 0 ] || [ $((10 * ${place%/*} / ${place#*/})) -le "$tenths" ]; then return; fi
  tenths=$((10 * ${place%/*} / ${place#*/}))
  echo "kolo: building, $place" >&2
}

# What it reads goes into the log.
log_and_show() {
  tenths=0
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s\n' "$line" >>"$log"
    case "$line" in
      "["*/*"]"*) show "$line" ;;
    esac
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# Runs what it is given, logged; true where that went well. A pipe's status is that of its end, so the command's comes by
# another way, where its output cannot be taken for it.
logged() {
  went=$({ { if "$@" 2>&1 3>&-; then echo well >&3; fi; } | log_and_show; } 3>&1 >&2)
  [ "$went" = well ]
}

mkdir -p "$build"
: >"$log"
[ -t 2 ] || echo "kolo: building (log: $log)" >&2
if ! { logged cmake -S "$root" --preset release &&
  logged cmake --build "$build" --parallel "$(nproc)" --target kolo-train; }; then
  tail -n 15 "$log" >&2
  echo "kolo: the build failed; all of it is in $log" >&2
  exit 1
fi

exec "$build/bin/kolo-train" compare "$@"
