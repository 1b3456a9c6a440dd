"""Files that are complete or unchanged: written to a temporary file and renamed.

Pipes and terminals are written in place. click.open_file(atomic=True) is not enough: it also
renames what was written before an error, makes the temporary file in the folder of a link instead
of that of its target, renames over pipes, and cannot tell beforehand whether a write will succeed.
"""

import contextlib
import errno
import os
import secrets
import sys
import time
from pathlib import Path
from typing import TextIO

_OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
_READER_S = 5.0  # seconds to wait for a reader of a named pipe


def is_stream(path: Path) -> bool:
    """Whether the path is a pipe, a terminal or the like: written once, in place."""
    return str(path).startswith(_OPEN_FILES) or (path.exists() and not path.is_file())


def own_stream(path: Path) -> TextIO | None:
    """stdout or stderr if the path names it: opened again, its start would be overwritten."""
    named = {"stdout": 1, "stderr": 2, "1": 1, "2": 2}.get(path.name)
    if named is None or not str(path).startswith(_OPEN_FILES):
        return None
    return sys.stdout if named == 1 else sys.stderr


def write_atomically(path: Path, text: str) -> None:
    """Writes `text` to a temporary file beside `path` and renames it.

    A replaced file keeps its mode, and links stay links. Raises OSError.
    """
    stream = own_stream(path)
    if stream is not None:
        stream.write(text)
        stream.flush()
        return
    if is_stream(path):
        with os.fdopen(_open_stream(path), "w") as pipe:
            pipe.write(text)
        return
    target = _target(path)
    # Named before it is created, so that a signal in between does not leave it behind.
    temporary = _sibling(target)
    try:
        with temporary.open("x", newline="") as file:
            file.write(text)
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sibling(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


def _target(path: Path) -> Path:
    """The target of links, which is what gets replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _open_stream(path: Path) -> int:
    """A descriptor to write to. Raises OSError (ENXIO) for a pipe without a reader."""
    end = time.monotonic() + _READER_S
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_TRUNC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise OSError(error.errno, "it has no reader") from error
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return handle


def check_writable(path: Path) -> str | None:
    """Why no file can be written there, as a sentence; None if one can. Leaves no file behind."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # a name that is too long, a file as a folder, a circle of links
        return f"{path} cannot be written ({error.strerror}): use another name."
    if path.is_dir():
        return f"{path} is a folder: use a file in it."
    if own_stream(path) is not None:
        return None
    target = _target(path)
    if not target.parent.is_dir():
        return f"{path} cannot be written (no folder {target.parent}): create it first."
    if is_stream(path):
        return None if os.access(path, os.W_OK) else f"{path} cannot be written."
    temporary = _sibling(target)
    try:
        temporary.open("x").close()
    except OSError as error:
        return f"{path} cannot be written ({error.strerror}): use another folder."
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return None
