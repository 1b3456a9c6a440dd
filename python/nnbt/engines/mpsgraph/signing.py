"""`nnbt sign-helper`: a signed copy of the helper that may ask for the Neural Engine's counters.

The shipped helper carries no entitlement and is never changed: a stock Mac kills a program that
claims this one, so only a copy in the user's data folder does.
"""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nnbt._native import Unsupported
from nnbt.engines.mpsgraph import helper
from nnbt.engines.mpsgraph.ane_tables import STATUSES
from nnbt.engines.mpsgraph.info import verdict
from nnbt.machine.files import write_atomically

ENTITLEMENT = "com.apple.ane.hardware-counters"
BOOT_ARGS = "amfi_get_out_of_my_way=0x1 anedebug=1"
_TIMEOUT_S = 60.0

CONSEQUENCES = (
    "A signature alone is not known to be enough. Every published run with counters also had "
    f"System Integrity Protection (SIP) off and the boot-args {BOOT_ARGS}; whether less would do "
    "is not known. The authors have run nothing of this on Apple hardware.",
    "What that costs: with these boot-args any program can claim any entitlement, malware too, and "
    "some programs that use the keychain fail. Do it on a spare machine or start-up volume only.",
    "To try: start into recovery (hold the power button), lower the volume's security in Startup "
    "Security Utility, type csrutil disable in its Terminal, restart, type sudo nvram "
    f'boot-args="{BOOT_ARGS}", restart, and see what nnbt info ane says.',
    "To undo: type sudo nvram -d boot-args and nnbt sign-helper --undo, restart into recovery, "
    "type csrutil enable, and set full security again. An update of the system may remove the "
    "boot-args by itself.",
)
"""What a signed copy needs beside its signature, what that costs, and how to undo it."""


@dataclass(frozen=True)
class Signed:
    """What became of a signed copy."""

    path: Path
    status: str
    """Of its selftest, a key of nnbt.engines.mpsgraph.ane.STATUSES."""
    entitled: bool | None
    detail: str

    @property
    def sentence(self) -> str:
        """What the status means."""
        return STATUSES.get(self.status, "This version doesn't know this status.")


def entitlements() -> bytes:
    """The property list with the one key that the copy is signed with."""
    return plistlib.dumps({ENTITLEMENT: True})


def sign() -> Signed:
    """Copies the shipped helper, signs the copy ad hoc and asks it for its selftest.

    An earlier copy stays until the new one is signed. Raises Unsupported with one sentence where
    there is no helper or no codesign, and where the copy can't be written or signed.
    """
    shipped, copy = helper.helper_path(), helper.signed_path()
    codesign = shutil.which("codesign")
    if not shipped.is_file():
        raise Unsupported(
            f"There is no helper to sign ({shipped}): it is part of the macOS package only."
        )
    if codesign is None:
        raise Unsupported(
            "There is no codesign on the PATH: it comes with macOS in /usr/bin; add that."
        )
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=copy.parent) as folder:
            fresh, keys = Path(folder) / copy.name, Path(folder) / "entitlements.plist"
            shutil.copyfile(shipped, fresh)
            fresh.chmod(0o755)
            keys.write_bytes(entitlements())
            _codesign(codesign, fresh, keys)
            fresh.replace(copy)
        write_atomically(helper.origin_path(copy), helper.digest(shipped) + "\n")
    except OSError as error:
        raise Unsupported(
            f"The copy {copy} can't be written: {error.strerror}; make its folder writable."
        ) from error
    document = helper.run_helper({"op": "selftest"}, executable=copy, timeout_s=_TIMEOUT_S)
    return Signed(copy, *verdict(document))


def _codesign(codesign: str, target: Path, keys: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the system's own signing tool on our own copy
            [codesign, "-s", "-", "--entitlements", str(keys), "-f", str(target)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise Unsupported(
            f"{codesign} took over {_TIMEOUT_S:g} s: try again when the machine is idle."
        ) from None
    except OSError as error:
        raise Unsupported(
            f"{codesign} can't be started ({error.strerror}): put /usr/bin first on the PATH."
        ) from error
    if done.returncode != 0:
        last = "".join(done.stderr.strip().splitlines()[-1:]) or f"exit code {done.returncode}"
        raise Unsupported(f"codesign refused to sign the copy: {last}")


def undo() -> list[Path]:
    """Removes the signed copy and what belongs to it; the paths that were there.

    Raises Unsupported where one can't be removed.
    """
    copy = helper.signed_path()
    removed = []
    for path in (copy, helper.origin_path(copy)):
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Unsupported(f"{path} can't be removed: {error.strerror}.") from error
        removed.append(path)
    return removed
