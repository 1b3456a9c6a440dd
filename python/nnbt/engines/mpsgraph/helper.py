"""The helper process: what can abort MPSGraph's process or needs an entitlement runs there.

The helper reads one JSON object and writes one JSON document; a process that ends by a signal gives
no document, and which signal says why. There are up to two executables: the shipped one, which is
never changed, and a copy that `nnbt sign-helper` signed for the Neural Engine's counters.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.spec.errors import StepError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "NNBT_HELPER"
"""Names another executable than the shipped one, for tests and for builds of one's own."""
START_S = 120.0
"""Seconds that starting and compiling may take: 20 layers take seconds, a busy daemon longer."""

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
_SHELL_BASE = 128
"""A shell, or a script in between, ends with this plus the signal."""


class HelperError(StepError):
    """The helper process ended without a result."""


@dataclass(frozen=True)
class Helper:
    """An executable that can be asked."""

    path: Path
    signed: bool = False
    """Whether it is the copy that carries the entitlement."""


def helper_path() -> Path:
    """Where the shipped executable lies: beside the extension module."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(str(_native.__file__)).with_name("nnbt_helper")


def signed_path() -> Path:
    """Where `nnbt sign-helper` puts its copy: in the user's data folder."""
    import platformdirs

    return Path(platformdirs.user_data_dir("nnbt", appauthor=False)) / "nnbt_helper_signed"


def origin_path(copy: Path) -> Path:
    """The file beside a signed copy that says which executable it was made from."""
    return copy.with_suffix(".sha256")


def digest(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def signed_copy() -> Helper | None:
    """The signed copy if there is one of the helper that is shipped now."""
    copy = signed_path()
    try:
        made_from = origin_path(copy).read_text(encoding="ascii").strip()
        current = copy.is_file() and made_from == digest(helper_path())
    except (OSError, ValueError):
        return None
    return Helper(copy, signed=True) if current else None


def for_counters() -> Helper:
    """Who is asked for counters: the signed copy, else the shipped helper."""
    return signed_copy() or Helper(helper_path())


def run_helper(
    request: Mapping[str, object], *, executable: Path | None = None, timeout_s: float = 600.0
) -> dict[str, Any]:
    """Asks a process of its own.

    Returns the helper's document; its "status" is "ok", "unsupported" or "error", and the last two
    come with a "message". One that stands for a missing document has "ended": how the process
    ended, a key of nnbt.engines.mpsgraph.ane.STATUSES. Raises Unsupported where there is no helper.
    """
    path = executable or helper_path()
    if not path.is_file():
        raise _native.Unsupported(
            f"there is no helper executable at {path}: it is part of the macOS package only"
        )
    try:
        done = _asked(path, request, timeout_s)
    except subprocess.TimeoutExpired:
        return _missing("error", f"the helper took over {timeout_s:g} s", "timed_out")
    except OSError as error:
        sentence = f"the helper {path} can't be started: {error.strerror}"
        return _missing("error", sentence, "helper_failed")
    ended = _native.ane_helper_status(done.returncode, False, bool(done.stdout.strip()))
    code = done.returncode
    number = -code if code < 0 else code - _SHELL_BASE
    if 0 < number <= signal.NSIG:
        unknown = ("error", f"the helper process ended by signal {number}")
        return _missing(*_SIGNALS.get(number, unknown), ended)
    try:
        document = json.loads(done.stdout)
    except (ValueError, RecursionError):
        document = None
    if code != 0 or not isinstance(document, dict) or "status" not in document:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        message = f"the helper gave no document (exit {code}): {last[0]}"
        return _missing("error", message, "helper_failed")
    return document


def _asked(
    path: Path, request: Mapping[str, object], timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    """What subprocess.run does; a process that dies can't remove its scratch files itself."""
    with subprocess.Popen(  # noqa: S603 - our own executable
        [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            out, err = process.communicate(json.dumps(request).encode(), timeout=timeout_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            _remove_scratch(process.pid, request.get("save_package"))
    return subprocess.CompletedProcess([path], process.returncode, out, err)


def _remove_scratch(pid: int, package: object) -> None:
    """Removes what cpp/package/save.cpp and objc/helper/operations.cpp name after their process."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TMP", "TEMP", "TEMPDIR"))
    folder = Path(next(filter(None, named), "/tmp"))  # noqa: S108 - as C++ finds it
    found = [*folder.glob(f"nnbt-replay-{pid}-*"), *folder.glob(f"nnbt.*.partial-{pid}-*")]
    if package:
        found += Path(str(package)).parent.glob(f"*.partial-{pid}-*")
    for path in found:
        shutil.rmtree(path, ignore_errors=True)


def _missing(status: str, message: str, ended: str) -> dict[str, Any]:
    return {"status": status, "message": message, "ended": ended}


def answer(
    request: Mapping[str, object], *, executable: Path | None = None, timeout_s: float = 600.0
) -> dict[str, Any]:
    """The helper's document where it has a result.

    Raises Unsupported or HelperError with the helper's sentence where it has none.
    """
    document = run_helper(request, executable=executable, timeout_s=timeout_s)
    if document["status"] == "ok":
        return document
    sentence = str(document.get("message", "the helper gave no reason"))
    sentence = sentence[:1].upper() + sentence[1:]
    if document["status"] == "unsupported":
        raise _native.Unsupported(sentence)
    raise HelperError(sentence)
