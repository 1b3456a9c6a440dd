"""How far an output is from its reference, and what a sample of an array holds."""

import numpy as np
from numpy.typing import NDArray

from nnbt.spec.workload import DataShare


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(np.square(np.abs(values)))))


def _over(error: float, scale: float) -> float:
    if scale == 0:
        return 0.0 if error == 0 else float("inf")
    return error / scale


def relative_error(output: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """RMS of the difference over the RMS of the reference; NaN if either contains a NaN."""
    with np.errstate(over="ignore", invalid="ignore"):  # NaN is one of the data modes
        return _over(_rms(output - reference), _rms(reference))


def element_errors(
    output: NDArray[np.float64], reference: NDArray[np.float64]
) -> tuple[float, float]:
    """(largest, median) difference of one element over the RMS of the reference."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = _rms(reference)
        differences = np.abs(output - reference)
    largest, middle = float(np.max(differences)), float(np.median(differences))
    return _over(largest, scale), _over(middle, scale) if scale else 0.0


def data_share(values: NDArray[np.generic], *, tiny: float, all_finite: bool) -> DataShare:
    """Shares of finite, zero and denormal elements (0 < |x| < tiny) in a sample."""
    magnitude = np.abs(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
    finite = np.isfinite(magnitude)
    clean = magnitude[finite]
    with np.errstate(over="ignore"):
        rms = _rms(clean) if clean.size else float("nan")
    return DataShare(
        finite=float(np.mean(finite)),
        zero=float(np.mean(magnitude == 0)),
        denormal=float(np.mean((magnitude > 0) & (magnitude < tiny))),
        rms=rms,
        all_finite=all_finite and bool(finite.all()),
    )
