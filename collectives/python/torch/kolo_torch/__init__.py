"""The backend "kolo" of torch.distributed, for tensors of the CPU.

    import kolo_torch                               # torch 2.15 and later need no import
    torch.distributed.init_process_group("kolo")
"""

import atexit
import weakref

import torch
import torch.distributed as dist

from . import _built_for


def _require_same_torch():
    installed = ".".join(torch.__version__.split(".")[:2])
    if installed != _built_for.TORCH:
        raise ImportError(
            f"kolo_torch is built for torch {_built_for.TORCH}, and torch {torch.__version__} is installed. torch has no "
            "stable interface for backends: build kolo_torch again, by `pip install --no-build-isolation "
            "--force-reinstall --no-deps collectives/python/torch` in the sources of kolo")


_require_same_torch()

from . import _backend  # noqa: E402

__version__ = _backend.kolo_version()

_groups = weakref.WeakSet()


def _create(options, _backend_options=None):
    made = _backend.create(options.store, options.group_rank, options.group_size, options.timeout,
                           options.group_id or "world")
    _groups.add(made)
    return made


@atexit.register
def _leave():
    """A program that ends without destroy_process_group() leaves its groups in order."""
    for group in list(_groups):
        _backend.shutdown(group)


def register():
    """Makes "kolo" known to torch.distributed. May be called again."""
    if "KOLO" not in dist.Backend._plugins:
        dist.Backend.register_backend("kolo", _create, extended_api=True, devices=["cpu"])


register()
