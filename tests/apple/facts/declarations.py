"""What the stub headers in tests/apple/sdk declare, from clang's syntax tree."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_SCALARS = {
    "signed char": "char",
    "unsigned char": "uint8",
    "unsigned short": "ushort",
    "unsigned int": "uint",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "char *": "cstring",
}
_QUALIFIERS = (
    r"\b(CF_RELEASES_ARGUMENT|const|_Nonnull|_Nullable|_Null_unspecified|__strong|__autoreleasing"
    r"|__unsafe_unretained|struct|volatile|restrict)\b"
)


@dataclass(frozen=True)
class Declaration:
    """One class, protocol, method, function, variable or enumeration constant."""

    kind: str  # class, protocol, method, function, variable, constant
    owner: str  # class, protocol or enumeration; empty for a function or variable
    name: str  # a method's starts with + or -
    superclass: str = ""
    result: str = ""
    arguments: tuple[str, ...] = ()
    value: int = 0

    @property
    def where(self) -> str:
        """The declaration as a reader would write it."""
        if self.kind == "method":
            return f"{self.name[0]}[{self.owner} {self.name[1:]}]"
        return self.name


def kind_of(qualified: dict[str, str]) -> str:
    """A clang type in the metadata's vocabulary; "object", "pointer" and "enum" stand for any."""
    written = re.sub(r"\s+", " ", re.sub(_QUALIFIERS, " ", qualified["qualType"])).strip()
    plain = qualified.get("desugaredQualType", qualified["qualType"])
    plain = re.sub(r"\s+", " ", re.sub(_QUALIFIERS, " ", plain)).strip()
    if "(^" in plain or "(^" in written or "Handler" in written:
        return "block"
    if written == "SEL":
        return "SEL"
    if re.fullmatch(r"\w+Ref", written):  # CoreFoundation: objects in the metadata
        return "object"
    if plain in ("id", "Class", "instancetype") or plain.startswith("id<"):
        return "object"
    if written in ("id", "instancetype", "ObjectType", "KeyType") or written.startswith("KeyType<"):
        return "object"
    if re.fullmatch(r"(NS|MPS|MTL|UI)\w+(<.*>)? \*", plain) and not re.match(
        r"(NSFastEnumerationState|NSPropertyListFormat|NSRange|NSZone)\b", plain
    ):
        return "object"
    if plain.startswith("enum ") or re.fullmatch(r"(MPS|MTL|NS)\w+", plain):
        return "enum"
    if plain in _SCALARS:
        return _SCALARS[plain]
    if plain.endswith(("*", "]")):
        return "pointer"
    return plain


class _Tree:
    """Walks the tree; clang prints a file name only where it changes, so every location counts."""

    def __init__(self) -> None:
        self.file = ""

    def follow(self, node: dict[str, Any]) -> None:
        places = [node.get("loc", {})]
        places += [node.get("range", {}).get(end, {}) for end in ("begin", "end")]
        for place in places:
            for inner in (place, place.get("spellingLoc", {}), place.get("expansionLoc", {})):
                self.file = inner.get("file", self.file)

    def follow_all(self, node: dict[str, Any]) -> None:
        self.follow(node)
        for child in node.get("inner", []):
            self.follow_all(child)

    def starts_in(self, part_of_path: str, node: dict[str, Any]) -> bool:
        place = node.get("loc", {})
        place = place.get("expansionLoc", place)
        return part_of_path in place.get("file", self.file)


def _constant_value(node: dict[str, Any]) -> int | None:
    if "value" in node:
        return int(node["value"])
    values = (_constant_value(child) for child in node.get("inner", []))
    return next((value for value in values if value is not None), None)


def _parameters(node: dict[str, Any]) -> tuple[str, ...]:
    children = node.get("inner", [])
    return tuple(kind_of(c["type"]) for c in children if c["kind"] == "ParmVarDecl")


def _interface(node: dict[str, Any]) -> Iterator[Declaration]:
    if node["kind"] == "ObjCCategoryDecl":
        owner = node["interface"]["name"]
    else:
        owner = node["name"]
        kind = "protocol" if node["kind"] == "ObjCProtocolDecl" else "class"
        superclass = node.get("super", {}).get("name", "")
        if kind == "class" and not superclass:
            return  # @class; a definition without a superclass does not compile
        yield Declaration(kind, owner, owner, superclass=superclass)
    for member in node.get("inner", []):
        if member["kind"] == "ObjCMethodDecl":
            sign = "-" if member.get("instance") else "+"
            yield Declaration(
                "method",
                owner,
                sign + member["name"],
                result=kind_of(member["returnType"]),
                arguments=_parameters(member),
            )


def _enumeration(node: dict[str, Any]) -> Iterator[Declaration]:
    value = -1
    for constant in node.get("inner", []):
        if constant["kind"] == "EnumConstantDecl":
            given = _constant_value(constant)
            value = value + 1 if given is None else given
            yield Declaration("constant", node.get("name", ""), constant["name"], value=value)


def _declarations(node: dict[str, Any]) -> Iterator[Declaration]:
    kind = node["kind"]
    if kind in ("ObjCInterfaceDecl", "ObjCProtocolDecl", "ObjCCategoryDecl"):
        yield from _interface(node)
    elif kind == "LinkageSpecDecl":
        for child in node.get("inner", []):
            yield from _declarations(child)
    elif kind == "FunctionDecl":
        yield Declaration("function", "", node["name"], arguments=_parameters(node))
    elif kind == "VarDecl":
        yield Declaration("variable", "", node["name"], result=kind_of(node["type"]))
    elif kind == "EnumDecl":
        yield from _enumeration(node)


def _parsed(clang: Sequence[str], source: str, part_of_path: str) -> list[Declaration]:
    """The declarations in files whose path contains `part_of_path`."""
    command = [*clang, "-x", "objective-c++", "-fobjc-arc", "-fblocks", "-fsyntax-only"]
    done = subprocess.run(
        [*command, "-Xclang", "-ast-dump=json", "-"],
        input=source,
        check=True,
        capture_output=True,
        text=True,
    )
    tree, found = _Tree(), []
    for node in json.loads(done.stdout)["inner"]:
        if tree.starts_in(part_of_path, node):
            found += _declarations(node)
        tree.follow_all(node)
    return found


def stub_declarations(clang: Sequence[str], frameworks: Sequence[str]) -> list[Declaration]:
    """Every declaration of the stub headers; `clang` is the command with the target's flags."""
    headers = [name if "/" in name else f"{name}/{name}.h" for name in frameworks]
    source = "".join(f"#import <{header}>\n" for header in headers)
    return _parsed(clang, source, "/System/Library/Frameworks/")


def header_declarations(clang: Sequence[str], header: Path) -> list[Declaration]:
    """Every declaration in one of our headers."""
    return _parsed(clang, f'#import "{header}"\n', str(header))
