#!/bin/sh
# Compares data-parallel strategies, from a bare machine to a report, in one command.
#
#   train/compare.sh [options of kolo-train compare]      --help lists them
#
# Installs missing packages, builds kolo-train, and runs `kolo-train compare`. Paths in options, and the report folder, are
# relative to the current folder.
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

# Options and values, checked here because kolo-train could reject them only after the build. A test compares them with its --help.
with_value='--strategies --strategy --ranks --n_gpus --n-gpus --ps-mode --ps_mode --servers --ps-optimizer --ps_optimizer --seeds --python
  --dataset --train-size --train_size --test-size --test_size --model --stem --batch-size --batch_size --global-batch --global_batch
  --epochs --steps --seed --lr --momentum --weight-decay --weight_decay --warmup-epochs --warmup_epochs --lr-schedule --lr_schedule
  --optimizer --lr-step-epochs --lr_step_epochs --lr-step-factor --lr_step_factor --lr-power --lr_power --label-smoothing --label_smoothing
  --micro-batch --micro_batch --compress --clip-norm --clip_norm
  --transport --shape --backend --precision --threads --reproducibility --bucket-bytes --bucket_bytes --first-bucket-bytes --first_bucket_bytes --timeout
  --straggle --eval-every --eval_every --hash-every --hash_every --skip-steps --skip_steps --report
  --image-size --image_size --loader-threads --loader_threads --augment --load --config'
without_value='--nesterov --sync-batch-norm --sync_batch_norm --progress-thread --no-progress-thread --no-report --profile --timeline'
models='resnet18 resnet34 resnet50 resnet101 cnn mlp small'
stems='imagenet cifar'
augmentations='none crop crop,flip'
schedules='constant step cosine polynomial'
optimizers='sgd adamw lars'
orders='fast ordered invariant'
precisions='float32 bfloat16'
formats='none bfloat16 float16 topk:R' # R: a part, such as 0.01
heads='ring ring_all_reduce ps param_server tree hierarchical auto sharded local-sgd pipeline dataparallel data_parallel torch-ddp torch-ddp-kolo torch-ps' # of the arms in --strategies
words_of_ps='dedicated sharded everywhere split servers=N optimizer=worker optimizer=server async ssp=S backup=B' # behind colons
words_of_ring='sync=naive sync=flat sync=overlap sync=bucketed sync=prioritized sync=fusion' # also of tree, hierarchical, auto
modes='dedicated sharded everywhere split'
places='worker server'
datasets='digits svhn:DIR mnist:DIR cifar10:DIR imagefolder:DIR synthetic[:HxWxC[:CLASSES]]'
transports='auto shm tcp ucx ofi cuda_ipc' # of any build, that join processes; or a library's path
counts='--ranks --servers --seeds --train-size --test-size --batch-size --global-batch --epochs --bucket-bytes --first-bucket-bytes
  --eval-every --image-size --loader-threads --micro-batch'
counts_or_none='--steps --seed --threads --hash-every --skip-steps'
numbers='--lr --lr-step-epochs --lr-step-factor --lr-power --label-smoothing --clip-norm --momentum --weight-decay --warmup-epochs --timeout'

refuse() {
  echo "kolo: $1; train/compare.sh --help lists the options" >&2
  exit 2
}

# is_in WORD LIST
is_in() {
  # shellcheck disable=SC2086,SC2116 # joins words on several lines to one line
  case " $(echo $2) " in *" $1 "*) ;; *) return 1 ;; esac
}

# listed LIST: with commas
listed() {
  # shellcheck disable=SC2086 # words
  echo $1 | sed 's/ /, /g'
}

# meant WORD LIST: prints "; did you mean X?" or nothing. X is the nearest word, by the rule of transports/base/suggestion.h.
meant() {
  # shellcheck disable=SC2086 # words
  printf '%s\n' $2 | awk -v word="$1" '
    function least(a, b) { return a < b ? a : b }
    {
      n = length(word); m = length($0)
      for (j = 0; j <= m; j++) edits[0, j] = j
      for (i = 1; i <= n; i++) {
        edits[i, 0] = i
        for (j = 1; j <= m; j++) {
          mine = substr(word, i, 1); its = substr($0, j, 1)
          edits[i, j] = least(edits[i - 1, j - 1] + (mine != its), least(edits[i - 1, j], edits[i, j - 1]) + 1)
          if (i > 1 && j > 1 && mine == substr($0, j - 1, 1) && its == substr(word, i - 1, 1))
            edits[i, j] = least(edits[i, j], edits[i - 2, j - 2] + 1)
        }
      }
      if (3 * edits[n, m] <= n && (found == "" || edits[n, m] < fewest)) { fewest = edits[n, m]; found = $0 }
    }
    END { if (found != "") print "; did you mean " found "?" }' 2>/dev/null || :
}

# require_one_of NAME VALUE LIST
require_one_of() {
  is_in "$2" "$3" || refuse "$1: unknown '$2'; expected one of $(listed "$3")$(meant "$2" "$3")"
}

# require_between NAME NUMBER LEAST MOST
require_between() {
  case "$2" in
    '' | *[!0-9]* | ?????????*) ;;
    *) if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then return; fi ;;
  esac
  refuse "$1: expected a number from $3 to $4"
}

# require_word_of_arm OPTION WORD ARM
require_word_of_arm() {
  case "$3" in
    ps:* | param_server:*) words=$words_of_ps ;;
    dataparallel:* | data_parallel:*) refuse "$1: '$3': dataparallel takes no words; remove '$2'" ;;
    sharded:* | torch-*:*) refuse "$1: '$3': ${3%%:*} takes no words; remove '$2'" ;;
    pipeline:*) require_between "$1: '$3'" "${3#*:}" 2 1024; return ;;
    local-sgd:*) require_between "$1: '$3'" "${3#*:}" 1 1000000; return ;;
    *) words=$words_of_ring ;;
  esac
  if is_in "$2" "$words"; then return; fi
  case "$words:$2" in
    "$words_of_ps":servers=*) require_between "$1: '$3': $2" "${2#*=}" 1 64; return ;;
    "$words_of_ps":ssp=* | "$words_of_ps":backup=*) require_between "$1: '$3': $2" "${2#*=}" 0 1000; return ;;
  esac
  kinds=$(echo "$words" | tr ' ' '\n' | sed -n 's/=.*/=/p')
  case "$2" in
    *=*)
      is_in "${2%%=*}=" "$kinds" || [ -n "$(meant "${2%%=*}=" "$kinds")" ] ||
        refuse "$1: '$3' sets $2, but arms may differ in their strategy only: give --${2%%=*} once, for every arm"
      ;;
  esac
  refuse "$1: unknown word '$2' in '$3'; ${3%%:*} takes $(listed "$words")$(meant "$2" "$words")"
}

# require_arm OPTION ARM
require_arm() {
  head=${2%%:*}
  require_one_of "$1" "$head" "$heads"
  rest=${2#"$head"}
  [ "$2" != local-sgd ] || refuse "$1: '$2' needs a number of steps, such as local-sgd:8"
  [ "$2" != pipeline ] || refuse "$1: '$2' needs a number of stages, such as pipeline:2"
  while [ -n "$rest" ]; do
    rest=${rest#:}
    require_word_of_arm "$1" "${rest%%:*}" "$2"
    case "$rest" in *:*) rest=:${rest#*:} ;; *) rest= ;; esac
  done
}

require_arms() {
  [ -n "$2" ] || refuse "$1: expected arms, as ring,ps"
  arms=$2,
  while [ -n "$arms" ]; do
    arm=$(printf '%s' "${arms%%,*}" | tr -d ' ')
    arms=${arms#*,}
    require_arm "$1" "$arm"
  done
}

require_count() {
  case "$2" in '' | *[!0-9]*) refuse "$1: expected a whole number, got '$2'" ;; esac
}

require_number() {
  case "$2" in '' | -* | *[!0-9.eE+-]*) refuse "$1: expected a number, got '$2'" ;; esac
}

require_report_folder() {
  [ -n "$2" ] || refuse "$1: expected a folder; --no-report writes none"
  place=$2
  while [ ! -e "$place" ]; do place=$(dirname -- "$place"); done
  [ -d "$place" ] || refuse "$1: the folder '$2' cannot be written: '$place' is not a folder"
  [ -w "$place" ] || refuse "$1: the folder '$2' cannot be written: '$place' is not writable"
}

require_dataset() {
  case "$2" in
    svhn:?* | mnist:?* | cifar10:?* | imagefolder:?*) [ -d "${2#*:}" ] || refuse "$1: there is no folder '${2#*:}'" ;;
    synthetic | synthetic:?*) ;;
    *) require_one_of "$1" "$2" "$datasets" ;;
  esac
}

# require_straggle NAME VALUE: rank=R,factor=F, in any order
require_straggle() {
  case ",$2," in
    ,rank=[0-9]*,factor=[1-9]*, | ,factor=[1-9]*,rank=[0-9]*,) ;;
    *) refuse "$1: expected rank=R,factor=F, with a worker R and F from 1 to 1000, as rank=1,factor=1.5; got '$2'" ;;
  esac
}

# check_value NAME VALUE; NAME may be any spelling of the option
check_value() {
  case "$1" in
    --n_gpus | --n-gpus) plain=--ranks ;;
    *) plain=$(echo "$1" | tr _ -) ;;
  esac
  case "$plain" in
    --model) require_one_of "$1" "$2" "$models" ;;
    --stem) require_one_of "$1" "$2" "$stems" ;;
    --augment) require_one_of "$1" "$2" "$augmentations" ;;
    --reproducibility) require_one_of "$1" "$2" "$orders" ;;
    --precision) require_one_of "$1" "$2" "$precisions" ;;
    --lr-schedule) require_one_of "$1" "$2" "$schedules" ;;
    --optimizer) require_one_of "$1" "$2" "$optimizers" ;;
    --ps-mode) require_one_of "$1" "$2" "$modes" ;;
    --ps-optimizer) require_one_of "$1" "$2" "$places" ;;
    --strategies | --strategy) require_arms "$1" "$2" ;;
    --dataset) require_dataset "$1" "$2" ;;
    --straggle) require_straggle "$1" "$2" ;;
    --compress)
      case "$2" in none | bfloat16 | float16 | topk:[01]*) ;; *) refuse "$1: expected $(listed "$formats"), got '$2'" ;; esac
      ;;
    --report) require_report_folder "$1" "$2" ;;
    --transport) case "$2" in */*) ;; *) require_one_of "$1" "$2" "$transports" ;; esac ;;
  esac
  if is_in "$plain" "$counts $counts_or_none"; then require_count "$1" "$2"; fi
  if is_in "$plain" "$counts"; then
    case "$2" in *[1-9]*) ;; *) refuse "$1: expected a whole number of at least 1, got '$2'" ;; esac
  fi
  if is_in "$plain" "$numbers"; then require_number "$1" "$2"; fi
}

check_words() {
  while [ $# -gt 0 ]; do
    word=$1
    shift
    case "$word" in --?*) ;; *) refuse "compare does not expect '$word'" ;; esac
    name=${word%%=*}
    if is_in "$name" "$without_value"; then continue; fi
    is_in "$name" "$with_value" || refuse "there is no option '$name'$(meant "$name" "$with_value $without_value")"
    case "$word" in
      *=*) value=${word#*=} ;;
      *)
        [ $# -gt 0 ] || refuse "$name needs a value"
        value=$1
        shift
        ;;
    esac
    check_value "$name" "$value"
  done
}
check_words "$@"

"$root/cmake/setup.sh" --with plots
if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi

# Shows the progress of ninja from a line "[12/340] ...": on a terminal in one line that is overwritten, else at each tenth.
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

# Copies standard input to the log, and shows the progress.
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

# Runs a command with its output in the log; returns whether it succeeded. The status of a pipe is that of its last command, so
# the status comes through file descriptor 3, where the output cannot be mistaken for it.
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
  echo "kolo: the build failed; the whole log is in $log" >&2
  exit 1
fi

exec "$build/bin/kolo-train" compare "$@"
