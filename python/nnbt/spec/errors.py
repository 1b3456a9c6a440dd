"""Errors whose text is a sentence for the user: Unsupported, Refusal, StepError."""

from nnbt._native import Unsupported

__all__ = ["Refusal", "StepError", "Unsupported"]


class Refusal(Unsupported):
    """What cannot be done here: `problem` says why, `instead` what to use or do."""

    def __init__(self, problem: str, instead: str = "") -> None:
        super().__init__(f"{problem}: {instead}." if instead else f"{problem}.")
        self.problem = problem
        self.instead = instead


class StepError(RuntimeError):
    """A Step ended without a result."""
