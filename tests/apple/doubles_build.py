"""The doubles' extension in the place of nnbt._native, and its helper process.

Import this before anything of nnbt. NNBT_DOUBLES_BUILD is the build directory (`.ci/apple run`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

BUILD = Path(os.environ["NNBT_DOUBLES_BUILD"])
HELPER = BUILD / "nnbt_helper"
MODULE = next(BUILD.glob("_native.*.so"))


def _load():
    spec = importlib.util.spec_from_file_location("nnbt._native", MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nnbt._native"] = module
    spec.loader.exec_module(module)
    return module


native = _load()
live_objects = ctypes.CDLL(str(MODULE)).nnbt_doubles_live_objects
live_objects.restype = ctypes.c_long


def helper(request, **changes):
    """The document of the helper for a small chain; `request` overrides its shape."""
    # Imported here: nnbt.helper takes its own _native from what _load() put into sys.modules.
    from nnbt.helper import run_helper

    request = {"size": 5, "channels": 2, "layers": 2, "runs": 3, "warmup": 1, **request}
    return run_helper(request, **{"executable": HELPER, **changes})
