"""The Neural Engine's registers, counter statuses and reasons as data; the rows are in cpp/."""

from __future__ import annotations

from dataclasses import dataclass

from nnbt import _native

__all__ = ["REASONS", "REGISTERS", "STATUSES", "Reading", "RegisterInfo", "explain"]


@dataclass(frozen=True)
class Reading:
    """What a register is believed to count in one layout."""

    meaning: str
    unit: str
    confidence: str
    """none, low, medium or high."""


@dataclass(frozen=True)
class RegisterInfo:
    """One row of the register table."""

    index: int
    label: str
    """The framework's own name without its `kANE_` prefix; several are wrong on M4."""
    common: Reading
    """The reading that holds in every known layout."""
    dma17: Reading
    """The reading where registers 17 and 18 count memory traffic (seen on M1)."""
    dma21: Reading
    """The reading where registers 21 and 22 count memory traffic (seen on M4)."""
    evidence: str
    falsifier: str
    """The observation that would prove the reading wrong."""

    def reading(self, layout: str | None) -> Reading:
        """Return the reading under `layout` (`dma17`, `dma21` or None for an unknown one)."""
        return {"dma17": self.dma17, "dma21": self.dma21}.get(layout or "", self.common)


REGISTERS: tuple[RegisterInfo, ...] = tuple(
    RegisterInfo(
        index, label, Reading(*common), Reading(*dma17), Reading(*dma21), evidence, falsifier
    )
    for index, label, common, dma17, dma21, evidence, falsifier in _native.ane_registers()
)
"""Registers 0 to 28, in order."""

STATUSES: dict[str, str] = dict(_native.ane_statuses())
"""Every counter status with the sentence that says what the user can do."""

REASONS: dict[str, str] = dict(_native.ane_reasons())
"""Every reason code of a decoding with its sentence."""


def explain(index: int, layout: str | None = None) -> str:
    """Say in one paragraph what register `index` is believed to count, why, and how sure that is.

    Raises IndexError for a register that isn't in the table.
    """
    if not 0 <= index < len(REGISTERS):
        raise IndexError(f"registers 0 to {len(REGISTERS) - 1} are known, not {index}")
    row = REGISTERS[index]
    reading = row.reading(layout)
    return (
        f"[{index}] {row.label}: {reading.meaning} ({reading.unit}; confidence "
        f"{reading.confidence}). {row.evidence} Would be wrong with: "
        f"{row.falsifier[0].lower()}{row.falsifier[1:]}"
    )
