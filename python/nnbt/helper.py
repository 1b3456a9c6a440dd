"""Runs one measurement in the helper process, since MPSGraph can abort the process it runs in.

The helper reads one JSON object and writes one JSON document; a process that ends by a signal gives
no document, and which signal says why.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnbt import _native

if TYPE_CHECKING:
    from collections.abc import Mapping

# Signal: status and sentence of the document that stands for the missing one.
_SIGNALS: dict[int, tuple[str, str]] = {
    signal.SIGABRT: (
        "unsupported",
        "MPSGraph aborted the helper process: this device can't run this variant; try another one",
    ),
    signal.SIGKILL: (
        "error",
        "the helper process was killed: sign it again, or use a smaller shape if memory ran out",
    ),
    signal.SIGSEGV: ("error", "the helper process crashed inside a framework"),
}


def helper_path() -> Path:
    """Where the helper executable lies: beside the extension module."""
    return Path(str(_native.__file__)).with_name("nnbt_helper")


def run_helper(
    request: Mapping[str, object], *, executable: Path | None = None, timeout_s: float = 600.0
) -> dict[str, Any]:
    """Measures in a process of its own.

    Returns the helper's document; its "status" is "ok", "unsupported" or "error", and the last two
    come with a "message". Raises Unsupported where there is no helper.
    """
    path = executable or helper_path()
    if not path.is_file():
        raise _native.Unsupported(
            f"there is no helper executable at {path}: it is part of the macOS package only"
        )
    try:
        done = subprocess.run(  # noqa: S603 - our own executable
            [path],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "error", "message": f"the helper took over {timeout_s:g} s"}
    if done.returncode < 0:
        unknown = ("error", f"the helper process ended by signal {-done.returncode}")
        status, message = _SIGNALS.get(-done.returncode, unknown)
        return {"status": status, "message": message}
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if done.returncode != 0 or not isinstance(document, dict) or "status" not in document:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return {
            "status": "error",
            "message": f"the helper gave no document (exit {done.returncode}): {''.join(last)}",
        }
    return document
