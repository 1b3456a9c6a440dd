"""Refusal: the one error for what can't be done here, in two parts that code can tell apart."""

from __future__ import annotations

from nnbt._native import Unsupported

__all__ = ["Refusal", "StepError", "Unsupported"]


class Refusal(Unsupported):
    """`problem` says what can't be done, `instead` what to use; the message joins them."""

    def __init__(self, problem: str, instead: str = "") -> None:
        super().__init__(f"{problem}: {instead}." if instead else f"{problem}.")
        self.problem = problem
        self.instead = instead


class StepError(RuntimeError):
    """A Step ended without a result; the text is a sentence for the user."""
