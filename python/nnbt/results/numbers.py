"""Numbers and rates as text."""

import math

RATE_UNITS = (
    ("B/s", "", "GB/s", "gb_per_s", 1e-9),
    *(
        (f"{family}/s", prefix, f"{prefix}{family}S", f"{prefix.lower()}{family.lower()}s", scale)
        for family in ("FLOP", "IOP", "QOP", "OP")
        for prefix, scale in (("G", 1e-9), ("T", 1e-12))
    ),
)
"""(base unit, prefix if there are several, header, key, scale) of the units that rates have."""
TERA = 1e12  # from here on rates are shown in T, below in G


def number(value: float) -> str:
    """A number with 4 significant digits, and all digits before the decimal point."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return "exact" if value == math.inf else "-"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(float(f"{value:.3e}"))))  # 999.96 has that of 1000
    if magnitude >= 3:
        return f"{value:.0f}"
    if magnitude >= -3:
        return f"{value:.{min(6, 3 - magnitude)}f}"
    return f"{value:.3e}"


def rate_text(rate: float, unit: str) -> str:
    """A rate in a base unit, with G or T."""
    here = [(header, scale) for base, _, header, _, scale in RATE_UNITS if base == unit]
    header, scale = here[-1] if rate >= TERA else here[0]
    return f"{number(rate * scale)} {header}"
