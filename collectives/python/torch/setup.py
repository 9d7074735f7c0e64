"""Builds kolo_torch: the backend "kolo" of torch.distributed, for the torch that is installed.

LIBKOLO=PATH/libkolo.so uses that library; else this builds it with CMake. The package takes a copy of it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SOURCES = sorted(str(path.relative_to(HERE)) for path in (HERE / "backend").glob("*.cpp"))


def version():
    return re.search(r"project\(\s*\w+\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def torch_minor():
    return ".".join(torch.__version__.split(".")[:2])


class Build(BuildExtension):
    """Puts libkolo.so beside the extension, and the version of torch that it was built for."""

    def run(self):
        library = self._library()
        for extension in self.extensions:
            extension.library_dirs.append(str(library.parent))
        super().run()
        package = (HERE if self.inplace else Path(self.build_lib)) / "kolo_torch"
        package.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, package / "libkolo.so.0")
        (package / "_built_for.py").write_text(f'TORCH = "{torch_minor()}"\nKOLO = "{version()}"\n')

    def _library(self):
        given = os.environ.get("LIBKOLO")
        if given:
            if not Path(given).is_file():
                raise SystemExit(f"LIBKOLO={given}: there is no such file")
            return Path(given).resolve()
        folder = Path(self.build_temp).resolve() / "kolo"
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DKOLO_BUILD_TESTS=OFF",
                        "-DKOLO_BUILD_BENCH=OFF", "-DKOLO_BUILD_TRAIN=OFF"], check=True)
        jobs = os.environ.get("MAX_JOBS") or str(len(os.sched_getaffinity(0)))  # torch reads MAX_JOBS, too
        subprocess.run(["cmake", "--build", folder, "--target", "kolo_shared", "--parallel", jobs], check=True)
        return folder / "collectives/c/libkolo.so"


def defines():
    """What this torch has, by its headers."""
    words = {"KOLO_TORCH_HAS_ERROR_TYPE": ("Backend.hpp", "enum class ErrorType"),
             "KOLO_TORCH_HAS_COALESCED_TYPES": ("Work.hpp", "REDUCE_SCATTER_TENSOR_COALESCED"),
             "KOLO_TORCH_HAS_STORE_CLONE": ("Store.hpp", "clone()")}
    folder = Path(include_paths()[0]) / "torch/csrc/distributed/c10d"
    return [f"-D{name}" for name, (header, word) in words.items() if word in (folder / header).read_text()]


setup(
    name="kolo-torch",
    version=version(),
    description='The backend "kolo" of torch.distributed',
    packages=["kolo_torch"],
    ext_modules=[CppExtension("kolo_torch._backend", SOURCES, include_dirs=[str(ROOT)], libraries=["kolo"],
                              extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-Wall", *defines()],
                              extra_link_args=["-Wl,-rpath,$ORIGIN"])],
    cmdclass={"build_ext": Build},
    entry_points={"torch.distributed.backends": ["kolo = kolo_torch:register"]},
    python_requires=">=3.9",
)
