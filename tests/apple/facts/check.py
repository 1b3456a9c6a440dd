"""Checks the stub headers and the built libraries against Apple's API (apple_api.json).

Sources use only what the stubs declare (ensured by the compiler), the stubs agree with the SDK
(checked here), and a built library sends, in addition, exactly the private selectors in
objc/private_api.h, which agree with private_api.json: each private class, selector, type and name
with its source.

usage: check.py stubs CLANG [FLAG...]
       check.py binary MACH_O...
"""

from __future__ import annotations

import json
import re
import struct
import sys
from pathlib import Path

from declarations import Declaration, header_declarations, stub_declarations
from extract import FRAMEWORKS

HERE = Path(__file__).resolve().parent
PRIVATE_HEADER = HERE.parents[2] / "objc/private_api.h"
PRIVATE_API = json.loads((HERE / "private_api.json").read_text())
NEWEST_IOS = (18, 0)  # macOS 15's sibling: what the runner may use unguarded
# Sent by the compiler, or declared in the system's NSObject.h instead of our stubs.
NSOBJECT = {
    "alloc", "class", "description", "init", "isKindOfClass:", "new", "respondsToSelector:",
    "instancesRespondToSelector:", ".cxx_construct", ".cxx_destruct",
    "countByEnumeratingWithState:objects:count:",
}  # fmt: skip
# Private classes and constants must be looked up at run time, never linked.
PRIVATE_SYMBOL = re.compile(r"_OBJC_CLASS_\$__|_kANE|_IOReport")


def split_signature(signature: str) -> tuple[str, list[str]]:
    """ "result (a, b)" to its parts; blocks nest parentheses."""
    depth = 0
    for at in range(len(signature) - 1, -1, -1):
        depth += (signature[at] == ")") - (signature[at] == "(")
        if depth == 0:
            break
    parts, depth, current = [], 0, ""
    for character in signature[at + 1 : -1]:
        depth += (character in "(<") - (character in ")>")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    parts += [current.strip()] if current.strip() else []
    return signature[:at].strip(), [part for part in parts if part != "..."]


def agree(ours: str, theirs: str) -> bool:
    """Whether a declared kind matches the metadata, which has no names of enumerations."""
    if theirs.startswith("block"):
        theirs = "block"
    elif theirs in ("instancetype", "Class", "id") or re.match(r"id<|[A-Z]\w*\*(<.*)?$", theirs):
        theirs = "object"
    elif theirs.startswith("array") or theirs.endswith("*"):
        theirs = "pointer"
    if ours == "enum":
        return theirs in ("int", "uint", "int64", "uint64")
    boolean = {"bool", "char", "uint8"}
    if ours in boolean and theirs in boolean:
        return True
    if {ours, theirs} <= {"pointer", "cstring"}:
        return True
    return ours == theirs


def signature_problems(declaration: Declaration, signature: str) -> list[str]:
    result, arguments = split_signature(signature)
    if len(arguments) != len(declaration.arguments):
        return [f"{declaration.where}: the SDK has {signature}"]
    pairs = list(zip(declaration.arguments, arguments, strict=True))
    if declaration.kind == "method":
        pairs.append((declaration.result, result))
    return [
        f"{declaration.where}: {ours} here, {theirs} in the SDK"
        for ours, theirs in pairs
        if not agree(ours, theirs)
    ]


def problems_of(declaration: Declaration, fact: dict[str, object] | None) -> list[str]:
    """Differences between a declaration and the SDK."""
    if fact is None:
        return [f"{declaration.where}: not in the SDK (or run extract.py again)"]
    if declaration.kind == "class" and (fact["super"] or "") != declaration.superclass:
        return [f"{declaration.where}: its superclass is {fact['super']}"]
    if declaration.kind == "constant":
        value = declaration.value & 0xFFFFFFFF
        return [] if value == fact["value"] else [f"{declaration.where}: is {fact['value']}"]
    problems = []
    if "type" in fact:
        problems += signature_problems(declaration, str(fact["type"]))
    release = tuple(map(int, str(fact.get("ios", "0")).split(".")))
    if release > NEWEST_IOS:
        problems.append(f"{declaration.where}: newer than iOS 18 (iOS {fact['ios']})")
    return problems


def selectors(binary: bytes) -> set[str]:
    """The selectors that an arm64 Mach-O file sends or looks up (__objc_methname)."""
    (commands,) = struct.unpack_from("<I", binary, 16)
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", binary, at)
        if command == 0x19:  # LC_SEGMENT_64
            (count,) = struct.unpack_from("<I", binary, at + 64)
            for header in range(at + 72, at + 72 + 80 * count, 80):
                if binary[header : header + 16].rstrip(b"\0") == b"__objc_methname":
                    length, offset = struct.unpack_from("<QI", binary, header + 40)
                    names = binary[offset : offset + length].split(b"\0")
                    return {name.decode() for name in names if name}
        at += size
    return set()


def private_selectors() -> set[str]:
    """The allow-list: selectors with a source in private_api.json."""
    return {re.sub(r"^.\[\S+ (.*)\]$", r"\1", where) for where in PRIVATE_API["selectors"]}


# Kinds of declarations.py by the letters of private_api.json.
KINDS = {
    "B": "bool", "I": "uint", "i": "int", "q": "int64", "Q": "uint64", "@": "object", "v": "void",
    "^@": "pointer", "^v": "object",
}  # fmt: skip


def private_problems(declarations: list[Declaration]) -> list[str]:
    """Where objc/private_api.h and private_api.json differ."""
    declared = {d.where: d for d in declarations if d.kind == "method"}
    known = PRIVATE_API["selectors"]
    problems = [f"{where}: declared without a source" for where in declared.keys() - known.keys()]
    problems += [f"{where}: not in private_api.h" for where in known.keys() - declared.keys()]
    for where in declared.keys() & known.keys():
        kinds = tuple(KINDS[letter] for letter in re.findall(r"\^?.", known[where]["type"]))
        if kinds != (declared[where].result, *declared[where].arguments):
            problems.append(f"{where}: its types aren't {known[where]['type']}")
    by_name = {where: fact["sources"] for where, fact in known.items()}
    by_name |= PRIVATE_API["classes"] | PRIVATE_API["names"]
    return sorted(problems) + [f"{name}: no source" for name, by in by_name.items() if not by]


def private_names(binary: bytes) -> set[str]:
    """Private classes and other names among a binary's strings; selectors are looked at apart."""
    names = rb"\0(k?_?ANE\w+|csr_\w+|\w*H\d\dANE\w+)(?=\0)"
    return {name.decode() for name in re.findall(names, binary)} - private_selectors()


def check_binary(path: Path, public: set[str]) -> list[str]:
    binary = path.read_bytes()
    sent = selectors(binary)
    if not sent:
        return [f"{path.name}: no selectors found"]
    unknown = sent - public - NSOBJECT - private_selectors()
    problems = [f"{path.name}: {name} is neither public nor declared private" for name in unknown]
    allowed = PRIVATE_API["classes"].keys() | PRIVATE_API["names"].keys()
    problems += [f"{path.name}: names {name}" for name in private_names(binary) - allowed]
    text = binary.decode("latin-1")
    problems += [f"{path.name}: links {name}" for name in set(PRIVATE_SYMBOL.findall(text))]
    print(f"{path.name}: {len(sent)} selectors, private: {sorted(sent & private_selectors())}")
    return problems


def main() -> None:
    facts = json.loads((HERE / "apple_api.json").read_text())["facts"]
    problems: list[str] = []
    if sys.argv[1] == "stubs":
        declarations = stub_declarations(sys.argv[2:], FRAMEWORKS)
        for declaration in declarations:
            problems += problems_of(declaration, facts.get(declaration.where))
        print(f"{len(declarations)} declarations compared with Apple's API")
        stale = set(facts) - {declaration.where for declaration in declarations}
        problems += [f"{where}: in apple_api.json but not declared" for where in sorted(stale)]
        if not declarations:
            problems.append("no declarations found")
        problems += private_problems(header_declarations(sys.argv[2:], PRIVATE_HEADER))
    else:
        public = {re.sub(r"^.\[\S+ (.*)\]$", r"\1", where) for where in facts if "[" in where}
        paths = [Path(path) for path in sys.argv[2:]]
        for path in paths:
            problems += check_binary(path, public)
        # Entries that are no longer used must be removed.
        named = set().union(*(private_names(path.read_bytes()) for path in paths))
        listed = PRIVATE_API["classes"].keys() | PRIVATE_API["names"].keys()
        problems += [f"{name}: listed, but no binary names it" for name in listed - named]
    for problem in problems:
        print("PROBLEM", problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
