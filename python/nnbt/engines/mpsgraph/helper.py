"""The helper process: what can abort MPSGraph's process or needs an entitlement runs there.

The helper reads one JSON object and writes one JSON document; a process that a signal ends writes
none, and the signal says why. There are up to two executables: the shipped one, which is never
changed, and a copy that `nnbt sign-helper` signed for the Neural Engine's counters.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnbt import _native
from nnbt.spec.errors import Refusal, StepError

VARIABLE = "NNBT_HELPER"
"""Environment variable: path of an executable to use instead of the shipped one."""
START_S = 120.0  # limit for starting and compiling: 20 layers take seconds, a busy daemon longer
MISREAD = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""Raised by reading a document whose values have other types than the protocol's."""

# Signal: status and sentence of the document that stands for the missing one.
_SIGNALS: dict[int, tuple[str, str]] = {
    signal.SIGABRT: (
        "unsupported",
        "MPSGraph aborted the helper process: this device cannot run this dtype; use another one",
    ),
    signal.SIGKILL: (
        "error",
        "the helper process was killed: sign it again, or use a smaller shape if memory ran out",
    ),
    signal.SIGSEGV: ("error", "the helper process crashed inside a framework"),
}
_SHELL_BASE = 128  # a shell that started the process ends with this plus the signal


class HelperError(StepError):
    """The helper process ended without a result."""


@dataclass(frozen=True)
class Helper:
    """An executable that can be run as the helper process."""

    path: Path
    signed: bool = False  # whether it is the copy with the entitlement


def helper_path() -> Path:
    """The shipped executable, next to the extension module."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(str(_native.__file__)).with_name("nnbt_helper")


def signed_path() -> Path:
    """The copy that `nnbt sign-helper` makes, in the user's data folder."""
    import platformdirs

    return Path(platformdirs.user_data_dir("nnbt", appauthor=False)) / "nnbt_helper_signed"


def origin_path(copy: Path) -> Path:
    """The file next to a signed copy with the SHA-256 of the executable it was made from."""
    return copy.with_suffix(".sha256")


def digest(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def signed_copy() -> Helper | None:
    """The signed copy, if it was made from the helper that is installed now."""
    copy = signed_path()
    try:
        made_from = origin_path(copy).read_text(encoding="ascii").strip()
        current = copy.is_file() and made_from == digest(helper_path())
    except (OSError, ValueError):
        return None
    return Helper(copy, signed=True) if current else None


def for_counters() -> Helper:
    """The executable that reads counters: the signed copy, else the shipped helper."""
    return signed_copy() or Helper(helper_path())


def no_executable(path: Path) -> Refusal:
    """The refusal where the shipped executable is missing."""
    return Refusal(
        f"There is no helper executable at {path}", "use the macOS package, which has it"
    )


def run_helper(
    request: Mapping[str, object], *, executable: Path | None = None, timeout_s: float = 600.0
) -> dict[str, Any]:
    """Runs a helper process for one request.

    Returns its document; "status" is "ok", "unsupported" or "error", and the last two come with a
    "message". If the process wrote no document, one is made up that also has "ended": how the
    process ended, a key of ane.STATUSES. Raises Refusal if there is no executable.
    """
    path = executable or helper_path()
    if not path.is_file():
        raise no_executable(path)
    try:
        done = _asked(path, request, timeout_s)
    except subprocess.TimeoutExpired:
        return _missing("error", f"the helper took over {timeout_s:g} s", "timed_out")
    except OSError as error:
        sentence = f"the helper {path} cannot be started: {error.strerror}"
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
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no error output"]
        message = f"the helper wrote no document (exit code {code}): {last[0]}"
        return _missing("error", message, "helper_failed")
    return document


def _asked(
    path: Path, request: Mapping[str, object], timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    """Like subprocess.run, and removes the scratch files of a process that died."""
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
    folder = Path(next(filter(None, named), "/tmp"))  # noqa: S108 - as in C++
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
    """The helper's document if it has a result.

    Raises Unsupported or HelperError with the helper's sentence if it has none.
    """
    document = run_helper(request, executable=executable, timeout_s=timeout_s)
    if document["status"] == "ok":
        return document
    sentence = str(document.get("message", "the helper gives no reason"))
    sentence = sentence[:1].upper() + sentence[1:]
    if document["status"] == "unsupported":
        raise _native.Unsupported(sentence)
    raise HelperError(sentence)
