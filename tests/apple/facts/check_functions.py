"""Checks the private C functions that objc/ looks up against their facts.

objc/private_functions.h declares them; private_functions.json is the allow-list, with types,
ownership and a source for each function and each key of IOReport's dictionaries. Sources and built
binaries may not name anything else of these libraries, and may not link them.

usage: check_functions.py [MACH_O...]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OBJC = HERE.parents[2] / "objc"
# Names of the libraries' functions and dictionary keys, as text.
NAME = re.compile(r"IOReport[A-Z]\w+|RawElements")
LINKED = re.compile(rb"\0_IOReport[A-Z]\w+")
TYPEDEF = re.compile(
    r"^typedef\s+(?P<result>[^;]+?)\s*\(\*(?P<name>\w+)\)\s*\((?P<arguments>[^;]*?)\)"
    r"\s*(?P<owned>__attribute__\(\(ns_returns_retained\)\))?;",
    re.MULTILINE,
)
NULLABILITY = re.compile(r"\b(_Nonnull|_Nullable|__strong)\b")
KINDS = {
    "id": "object",
    "NSDictionary*": "object",
    "NSString*": "object",
    "int": "int",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "uint32_t": "uint",
}


def kind_of(written: str) -> str:
    plain = re.sub(r"\s+", "", NULLABILITY.sub("", written))
    if plain in KINDS:
        return KINDS[plain]
    return "pointer" if plain.endswith("*") else plain


def declared(header: str) -> dict[str, dict[str, Any]]:
    """Type and ownership of each function in the header, in the notation of the facts."""
    found = {}
    for match in TYPEDEF.finditer(header):
        arguments = ", ".join(kind_of(part) for part in match["arguments"].split(","))
        found[match["name"]] = {
            "type": f"{kind_of(match['result'])} ({arguments})",
            "owned": match["owned"] is not None,
        }
    return found


def header_problems(header: str, facts: dict[str, Any]) -> list[str]:
    functions = declared(header)
    problems = []
    for name, ours in functions.items():
        fact = facts["functions"].get(name)
        if fact is None:
            problems.append(f"{name}: declared without a fact")
            continue
        problems += [
            f"{name}: {key} is {ours[key]} here, {fact[key]} in the facts"
            for key in ours
            if ours[key] != fact[key]
        ]
    problems += [f"{name}: never declared" for name in facts["functions"] if name not in functions]
    if header.count("typedef") != len(functions):
        problems.append("a typedef in the header couldn't be read")
    return problems


def source_problems(sources: str, facts: dict[str, Any]) -> list[str]:
    """Names in string literals without a fact, and facts that no source uses."""
    literals = set(re.findall(r'"([^"\n]*)"', sources))
    named = {text for text in literals if NAME.fullmatch(text)}
    known = {*facts["functions"], *facts["keys"]}
    libraries = {fact["library"] for fact in facts["functions"].values()}
    problems = [f"{name}: looked up without a fact" for name in sorted(named - known)]
    problems += [f"{name}: a fact that nothing uses" for name in sorted(known - named)]
    problems += [f"{path}: never opened" for path in sorted(libraries - literals)]
    for name, fact in facts["functions"].items():
        if "github.com/" not in fact["source"]:
            problems.append(f"{name}: has no source")
    return problems


def binary_problems(name: str, binary: bytes, facts: dict[str, Any]) -> list[str]:
    known = {*facts["functions"], *facts["keys"]}
    texts = {text.decode("latin-1") for text in binary.split(b"\0")}
    named = {text for text in texts if NAME.fullmatch(text)}
    problems = [f"{name}: names {text} without a fact" for text in sorted(named - known)]
    linked = sorted({match[1:].decode() for match in LINKED.findall(binary)})
    problems += [f"{name}: links {symbol}" for symbol in linked]
    print(f"{name}: {len(named)} of {len(known)} private names of C libraries, none linked")
    return problems


def main() -> None:
    facts = json.loads((HERE / "private_functions.json").read_text())
    header = (OBJC / "private_functions.h").read_text()
    sources = "".join(path.read_text() for path in sorted(OBJC.rglob("*.mm")))
    problems = header_problems(header, facts) + source_problems(sources, facts)
    for path in map(Path, sys.argv[1:]):
        problems += binary_problems(path.name, path.read_bytes(), facts)
    for problem in problems:
        print("PROBLEM", problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
