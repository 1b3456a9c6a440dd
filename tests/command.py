"""The installed command in a process of its own."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sysconfig
import termios
from pathlib import Path

COMMAND = Path(sysconfig.get_path("scripts")) / "nnbt"
QUICK = ("--device", "cpu", "--sizes", "64", "--runs", "5")
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(**changes: str | None) -> dict[str, str]:
    """This process's variables with changes; None takes one away."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def nnbt(
    *args: object, cwd: Path | None = None, command: Path = COMMAND, **changes: str | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *map(str, args)], cwd=cwd, env=environment(**changes), capture_output=True,
        text=True, encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A line for bash in which `nnbt` is the installed command."""
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line], cwd=cwd, env=environment(PATH=path), capture_output=True, text=True,
        encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip


def on_terminal(width: int, *args: object, **changes: str | None) -> tuple[int, str]:
    """(exit code, all output) on a pseudo-terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        [COMMAND, *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
        env=environment(**{"TERM": "xterm-256color", **changes}),
    )  # fmt: skip
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux reports the end of a terminal as EIO
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    return process.wait(60), b"".join(parts).decode()
