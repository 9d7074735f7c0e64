#!/bin/sh
# Tests of the backend "kolo" of torch.distributed, with a torch that is installed.
#
#   test/torch.sh PYTHON [quick|suite|all]
#
# PYTHON is the interpreter of an environment with torch, numpy and expecttest, such as ~/torch/bin/python. It is not part of
# .ci/run, as such an environment takes 5.6 GB. The package is built into build/torch of the tree; nothing is installed.
#   quick  results beside gloo's, failures, optimizers and Horovod's interface; LightGBM's trees, if it is installed
#   suite  PyTorch's own tests with kolo and gloo, as a table in build/torch_suite.md
set -eu

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
  echo "usage: test/torch.sh PYTHON [quick|suite|all]: give the interpreter of an environment with torch" >&2
  exit 2
fi
python=$1
what=${2:-all}
case "$what" in
  quick | suite | all) ;;
  *) echo "test/torch.sh: '$what' is not a part: expected one of quick, suite, all" >&2; exit 2 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
for module in torch numpy expecttest; do
  "$python" -c "import $module" 2>/dev/null || { echo "test/torch.sh: $python has no $module" >&2; exit 2; }
done

rm -rf "$root/build/torch"
"$python" -m pip install --quiet --no-deps --no-build-isolation --no-index --target "$root/build/torch" \
  "$root/collectives/python/torch"
export PYTHONPATH="$root/build/torch" OMP_NUM_THREADS=1

failed=
if [ "$what" != suite ]; then
  for test in "$root"/test/torch/*_test.py; do
    "$python" -W ignore "$test" || failed="$failed ${test##*/}"
  done
  ${CXX:-c++} -std=c++20 -O2 -shared -fPIC -I"$root/collectives/c" "$root/collectives/examples/lightgbm.cpp" \
    "$root/build/torch/kolo_torch/libkolo.so.0" -Wl,-rpath,"$root/build/torch/kolo_torch" -o "$root/build/torch/kolo_lightgbm.so"
  "$python" "$root/test/collectives/lightgbm_test.py" "$root/build/torch/kolo_lightgbm.so" || failed="$failed lightgbm_test.py"
fi
if [ "$what" != quick ]; then
  "$python" "$root/test/torch/pytorch_suite.py" --rows "$root/build/torch_suite" >"$root/build/torch_suite.md" ||
    failed="$failed pytorch_suite.py"
  cat "$root/build/torch_suite.md"
fi
[ -z "$failed" ] || { echo "test/torch.sh: failed:$failed" >&2; exit 1; }
