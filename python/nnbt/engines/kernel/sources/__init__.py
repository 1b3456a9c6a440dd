"""GPU kernels: their sources as text files, the tables of rows, and preparation and checks."""

from functools import cache
from importlib import resources


@cache
def text(*names: str) -> str:
    """The named source files, concatenated."""
    folder = resources.files(__name__)
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)
