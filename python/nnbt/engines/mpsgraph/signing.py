"""`nnbt sign-helper`: a signed copy of the helper that may ask for the Neural Engine's counters.

The shipped helper has no entitlement and is never changed: a stock Mac kills a program that claims
this one, so only a copy in the user's data folder does.
"""

import plistlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nnbt.engines.mpsgraph import helper
from nnbt.engines.mpsgraph.ane_tables import status_sentence
from nnbt.engines.mpsgraph.info import selftest_result
from nnbt.machine.files import write_atomically
from nnbt.spec.errors import Refusal

ENTITLEMENT = "com.apple.ane.hardware-counters"
BOOT_ARGS = "amfi_get_out_of_my_way=0x1 anedebug=1"
_TIMEOUT_S = 60.0

CONSEQUENCES = (
    "A signature alone is not known to be enough. Every published run with counters also had "
    f"System Integrity Protection (SIP) off and the boot-args {BOOT_ARGS}; whether less is enough "
    "is not known. The authors have run none of this on Apple hardware.",
    "The price: with these boot-args any program can claim any entitlement, malware included, and "
    "some programs that use the keychain fail. Do this on a spare machine or startup volume only.",
    "To try it: start up in Recovery (hold the power button), lower the security of the volume in "
    "Startup Security Utility, run csrutil disable in Terminal, restart, run sudo nvram "
    f'boot-args="{BOOT_ARGS}", restart, and look at nnbt info ane.',
    "To undo it: run sudo nvram -d boot-args and nnbt sign-helper --undo, restart in Recovery, run "
    "csrutil enable, and set full security again. A system update may remove the boot-args.",
)
"""What counters need besides a signed copy, what that costs, and how to undo it."""


@dataclass(frozen=True)
class Signed:
    """A signed copy and its selftest."""

    path: Path
    status: str  # of its selftest, a key of ane.STATUSES
    entitled: bool | None
    detail: str

    @property
    def sentence(self) -> str:
        """What the status means."""
        return status_sentence(self.status)


def entitlements() -> bytes:
    """The property list that the copy is signed with; it has one key."""
    return plistlib.dumps({ENTITLEMENT: True})


def sign() -> Signed:
    """Copies the shipped helper, signs the copy ad hoc and runs its selftest.

    An earlier copy stays until the new one is signed. Raises Refusal if there is no helper or no
    codesign, or if the copy cannot be written or signed.
    """
    shipped, copy = helper.helper_path(), helper.signed_path()
    codesign = shutil.which("codesign")
    if not shipped.is_file():
        raise helper.no_executable(shipped)
    if codesign is None:
        raise Refusal("There is no codesign on the PATH", "add /usr/bin, where macOS has it")
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
        raise Refusal(
            f"{copy} cannot be written ({error.strerror})", "make its folder writable"
        ) from error
    document = helper.run_helper({"op": "selftest"}, executable=copy, timeout_s=_TIMEOUT_S)
    return Signed(copy, *selftest_result(document))


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
        raise Refusal(
            f"{codesign} took over {_TIMEOUT_S:g} s", "try again when the machine is idle"
        ) from None
    except OSError as error:
        raise Refusal(
            f"{codesign} cannot be started ({error.strerror})", "put /usr/bin first on the PATH"
        ) from error
    if done.returncode != 0:
        last = "".join(done.stderr.strip().splitlines()[-1:]) or f"exit code {done.returncode}"
        raise Refusal(f"codesign did not sign the copy ({last})")


def undo() -> list[Path]:
    """Removes the signed copy and its checksum; returns the paths that existed.

    Raises Refusal if one cannot be removed.
    """
    copy = helper.signed_path()
    removed = []
    for path in (copy, helper.origin_path(copy)):
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Refusal(f"{path} cannot be removed ({error.strerror})") from error
        removed.append(path)
    return removed
