"""Tables of the Neural Engine's registers, counter statuses and reasons; the rows are in C++."""

from dataclasses import dataclass

from nnbt import _native
from nnbt.spec.details import RegisterReading


@dataclass(frozen=True)
class RegisterInfo:
    """One row of the register table."""

    index: int
    label: str  # the framework's own name without its `kANE_` prefix; several are wrong on M4
    common: RegisterReading  # the reading that holds in every known layout
    dma17: RegisterReading
    """The reading where registers 17 and 18 count memory traffic (seen on M1)."""
    dma21: RegisterReading
    """The reading where registers 21 and 22 count memory traffic (seen on M4)."""
    evidence: str
    falsifier: str  # the observation that would prove the reading wrong

    def reading(self, layout: str | None) -> RegisterReading:
        """Return the reading in `layout` (`dma17`, `dma21`, or None if unknown)."""
        return {"dma17": self.dma17, "dma21": self.dma21}.get(layout or "", self.common)


REGISTERS: tuple[RegisterInfo, ...] = tuple(
    RegisterInfo(
        index,
        label,
        RegisterReading(*common),
        RegisterReading(*dma17),
        RegisterReading(*dma21),
        evidence,
        falsifier,
    )
    for index, label, common, dma17, dma21, evidence, falsifier in _native.ane_registers()
)
"""Registers 0 to 28, in order."""

STATUSES: dict[str, str] = dict(_native.ane_statuses())
"""Every counter status, with a sentence on what it means and what to do."""

REASONS: dict[str, str] = dict(_native.ane_reasons())
"""Every code that limits what a decoding may be used for, with its sentence."""


def status_sentence(status: str) -> str:
    """What a status means, for any text that a helper may send."""
    return STATUSES.get(status, "This version of nnbt does not know this status.")


def explain(index: int, layout: str | None = None) -> str:
    """Return a paragraph on what register `index` is believed to count, why, and how certain it is.

    Raises IndexError for a register that is not in the table.
    """
    if not 0 <= index < len(REGISTERS):
        raise IndexError(f"register {index} is not one of 0 to {len(REGISTERS) - 1}")
    row = REGISTERS[index]
    reading = row.reading(layout)
    return (
        f"[{index}] {row.label}: {reading.meaning} ({reading.unit}; confidence "
        f"{reading.confidence}). {row.evidence} What would prove it wrong: "
        f"{row.falsifier[0].lower()}{row.falsifier[1:]}"
    )
