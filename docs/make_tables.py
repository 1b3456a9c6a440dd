"""Makes the option tables of README.md and docs/ from OPTIONS.

    python docs/make_tables.py --check    compares them, and fails if one is out of date
    python docs/make_tables.py --write    writes them anew

A table stands between <!-- options: NAME --> and <!-- /options -->, where NAME is a command (run,
conv, ladder) or `common`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nnbt.cli.options import params
from nnbt.spec.options import OPTIONS, Option, options_of

ROOT = Path(__file__).resolve().parents[1]
COMMON = ("metric", "device", "engine", "sizes", "dtype", "runs", "csv", "json")
TABLE = re.compile(r"(<!-- options: (\w+) -->\n).*?(<!-- /options -->)", re.DOTALL)


def line(row: Option, metavar: str | None) -> str:
    """One line of a table."""
    flags = ", ".join(f"`{flag} {metavar or ''}".rstrip() + "`" for flag in row.flags)
    names = [f"`{alias.flag}`" for alias in row.aliases if not alias.deprecated]
    also = f" Also {', '.join(names)}." if names else ""
    default = row.shown_default
    if row.kind == "name" and not row.default_text:
        default = f"`{default}`"
    return f"| {flags} | {row.described()}{also} | {default} |".replace("|  |", "| |")


def table(name: str) -> str:
    """The table of a command."""
    command = "run" if name == "common" else name
    rows = options_of(command)
    lines = [line(row, param.metavar) for row, param in zip(rows, params(command), strict=True)]
    if name == "common":
        lines = [text for row, text in zip(rows, lines, strict=True) if row.name in COMMON]
    return "\n".join(["| option | meaning | default |", "| --- | --- | --- |", *lines, ""])


def main() -> int:
    """Exit code 1 if a table is missing or out of date."""
    problems = []
    missing = {command for row in OPTIONS.values() for command in row.commands}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        old = path.read_text(encoding="utf-8")
        missing -= {match[1] for match in TABLE.findall(old)}
        new = TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], old)
        if new == old:
            continue
        if "--write" in sys.argv[1:]:
            path.write_text(new, encoding="utf-8")
        else:
            problems.append(f"{path.relative_to(ROOT)} is out of date: run {sys.argv[0]} --write")
    problems += [f"no file has a table of {command}" for command in sorted(missing)]
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
