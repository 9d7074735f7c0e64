"""Build backend of the package: scikit-build-core, and a source distribution that has kolo's libraries, too.

The libraries lie beside this folder. A source distribution is the tree without tests, benchmarks and training, with the
package's pyproject.toml at its root.
"""

import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from scikit_build_core.build import *  # noqa: F403  # pylint: disable=wildcard-import,unused-wildcard-import
from scikit_build_core.build import prepare_metadata_for_build_wheel

HERE = Path(__file__).resolve().parent
# Below the root: the tree, or a source distribution that was unpacked.
PARTS = ("CMakeLists.txt", "LICENSE", "cmake", "collectives", "transports", "bench/cli/kolo_run.cpp")
LEFT_OUT = shutil.ignore_patterns("build", "torch", "__pycache__", "*.pyc", "*.egg-info")
# Of pyproject.toml: paths from this folder, and from the root.
PATHS = {'backend-path = ["."]': 'backend-path = ["collectives/python"]',
         'readme = "README.md"': 'readme = "collectives/python/README.md"',
         'cmake.source-dir = "../.."': 'cmake.source-dir = "."',
         'wheel.packages = ["kolo"]': 'wheel.packages = ["collectives/python/kolo"]',
         'input = "../../CMakeLists.txt"': 'input = "CMakeLists.txt"'}


def build_sdist(sdist_directory, config_settings=None):
    root = HERE.parents[1]
    with tempfile.TemporaryDirectory() as folder:
        metadata = Path(folder, prepare_metadata_for_build_wheel(folder, config_settings), "METADATA").read_text()
        name = "kolo-" + re.search(r"^Version: (.*)$", metadata, re.MULTILINE).group(1)
        copy = Path(folder, name)
        for part in PARTS:
            (copy / part).parent.mkdir(parents=True, exist_ok=True)
            if (root / part).is_dir():
                shutil.copytree(root / part, copy / part, ignore=LEFT_OUT)
            else:
                shutil.copy(root / part, copy / part)
        project = (HERE / "pyproject.toml").read_text()
        for ours, theirs in PATHS.items():
            if ours not in project:
                raise RuntimeError(f"pyproject.toml has no line '{ours}', which a source distribution must change")
            project = project.replace(ours, theirs)
        (copy / "pyproject.toml").write_text(project)
        (copy / "PKG-INFO").write_text(metadata)
        with tarfile.open(Path(sdist_directory, f"{name}.tar.gz"), "w:gz") as archive:
            archive.add(copy, name)
    return f"{name}.tar.gz"
