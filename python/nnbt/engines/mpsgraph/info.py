"""`nnbt info ane`: the Neural Engine of this machine, which counters are locked, and why."""

from collections.abc import Iterator, Mapping
from typing import Any

from nnbt.engines.mpsgraph import helper
from nnbt.engines.mpsgraph.ane_tables import status_sentence
from nnbt.engines.mpsgraph.helper import Helper

_TIMEOUT_S = 60.0
NOT_RUN = "none of this has run on Apple hardware yet: see docs/first-mac-run.md"
POWER = {
    "ok": "energy counters can be read",
    "absent": "this system has no known energy counters",
    "denied": "energy counters are listed, but this process may not read them",
    "frozen_zero": "energy counters are listed, but do not change for this process",
}
"""Every state of IOReport, in words."""
Rows = list[tuple[str, str]]


def sections() -> list[tuple[str, Rows]]:
    """(heading, rows) from the helper. Raises Unsupported or HelperError if it cannot be run."""
    shipped = helper.Helper(helper.helper_path())
    document = helper.answer({"op": "info"}, executable=shipped.path, timeout_s=_TIMEOUT_S)
    ane = document.get("ane")
    ane = ane if isinstance(ane, dict) else {}
    found = [("Neural Engine", list(_engine(ane))), ("counters", list(_counters(shipped, ane)))]
    power = document.get("power")
    if isinstance(power, dict):
        found.append(("energy and clocks", list(_power(power))))
    return found


def _text(value: object, words: tuple[str, str] = ("yes", "no")) -> str:
    if isinstance(value, bool):
        return words[0] if value else words[1]
    return "unknown" if value in (None, "") else str(value)


def _engine(ane: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "present", _text(ane.get("present"))
    for name in ("driver", "architecture", "cores", "firmware"):
        yield name, _text(ane.get(name))
    yield "virtual machine", _text(ane.get("virtual_machine"))
    missing = ane.get("missing")
    names = ", ".join(map(str, missing)) if isinstance(missing, list) else ""
    complete = _text(ane.get("framework_complete"), ("complete", f"lacks {names or 'something'}"))
    yield "framework", complete
    yield "proof", NOT_RUN


def _counters(shipped: Helper, ane: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    signed = helper.signed_copy()
    stale = signed is None and helper.signed_path().is_file()
    yield "shipped helper", str(shipped.path)
    if signed is not None:
        yield "signed copy", str(signed.path)
    elif stale:
        yield "signed copy", "of another version, so not used: run nnbt sign-helper again"
    else:
        yield "signed copy", "none: nnbt sign-helper makes one, and prints what else counters need"
    asked = signed or shipped
    document = helper.run_helper({"op": "selftest"}, executable=asked.path, timeout_s=_TIMEOUT_S)
    status, entitled, detail = selftest_result(document)
    yield "entitlement", _text(entitled)
    yield "boot-args", _text(ane.get("boot_args") or "none")
    yield "SIP", _text(ane.get("sip"))
    more = f" ({detail})" if detail else ""
    yield "access", f"{status}: {status_sentence(status)}{more}"


def selftest_result(document: Mapping[str, Any]) -> tuple[str, bool | None, str]:
    """(status of the counters, whether the process has the entitlement, detail) of a selftest.

    The status is a key of ane.STATUSES, also if the process ended without a document.
    """
    test = document.get("selftest")
    if document.get("status") != "ok" or not isinstance(test, dict):
        ended = str(document.get("ended", "helper_failed"))
        return ended, None, str(document.get("message", ""))
    entitled = test.get("entitled")
    return (
        str(test.get("counters", "helper_failed")),
        entitled if isinstance(entitled, bool) else None,
        str(test.get("detail") or ""),
    )


def _power(power: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    state, detail = str(power.get("ioreport")), power.get("detail")
    more = f" ({detail})" if detail else ""
    yield "energy by rail", f"{state}: {POWER.get(state, 'unknown state')}{more}"
    yield "thermal state", _text(power.get("thermal_state"))
    yield "low-power mode", _text(power.get("low_power_mode"), ("on", "off"))
