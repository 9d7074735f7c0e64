"""The backend "kolo" of torch.distributed. `import kolo.torch` registers it; from torch 2.15 on no import is needed.

It comes with the package kolo_torch (collectives/python/torch), which is built for one version of torch.
"""

try:
    from kolo_torch import register
except ModuleNotFoundError as error:
    if error.name != "kolo_torch":
        raise
    raise ImportError(
        "the backend of torch.distributed is a package of its own: in the sources of kolo, run "
        "`pip install --no-build-isolation --no-deps collectives/python/torch`") from error

__all__ = ["register"]
