"""GPU kernels: sources as text files beside this one, and what prepares and checks a launch."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def text(*names: str) -> str:
    """The named source files, one after the other."""
    folder = resources.files(__name__)
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)
