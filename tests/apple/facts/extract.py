"""Writes apple_api.json: what Apple's SDK says about each declaration of the stub headers.

Facts only, from two npm packages: @nativescript/macos-node-api (the macOS SDK's selectors, types
and values, MIT) and @nativescript/types-ios (first iOS release of each, Apache-2.0).

The macOS SDK has no UIKit, so the declarations for the iOS app are compared with the typings only:
class and member names and releases, no types.

usage: extract.py MACOS_PACKAGE IOS_PACKAGE CLANG [FLAG...]
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from declarations import Declaration, stub_declarations
from nsmd import Api, Interface, read_api

HERE = Path(__file__).resolve().parent
# A name without a path means the framework's main header.
FRAMEWORKS = (
    "Foundation",
    "Metal",
    "MetalPerformanceShaders",
    "MetalPerformanceShadersGraph",
    "UIKit",
    "CoreFoundation",
    "IOKit/IOKitLib.h",
    "IOSurface/IOSurfaceRef.h",
    "Security/SecTask.h",
)


def method_signature(api: Api, owner: str, name: str) -> str | None:
    """The signature of a selector, which a superclass or protocol of the owner may declare."""
    seen: set[int] = set()
    todo: list[Interface | None] = [api.classes.get(owner), api.protocols.get(owner)]
    while todo:
        interface = todo.pop()
        if interface is None or id(interface) in seen:
            continue
        seen.add(id(interface))
        if name in interface.methods:
            return interface.methods[name]
        todo += [api.protocols.get(protocol) for protocol in interface.protocols]
        todo.append(api.classes.get(interface.superclass or ""))
    return None


def constant_value(api: Api, declaration: Declaration) -> int | None:
    """The value of a constant; the metadata omits the common prefix of an enumeration."""
    constants = api.enums.get(declaration.owner, {})
    endings = [key for key in constants if declaration.name.endswith(key)]
    return constants[max(endings, key=len)] & 0xFFFFFFFF if endings else None


def script_name(selector: str) -> str:
    """A selector's name in the typings: parts joined; accessors by their property."""
    first, *rest = selector.split(":")
    accessor = re.fullmatch(r"(?:set|is)([A-Z])(\w*)", first)
    if accessor and rest in ([], [""]):
        return accessor[1].lower() + accessor[2]
    return first + "".join(part[:1].upper() + part[1:] for part in rest if part)


@dataclass
class Typings:
    """What the iOS typings know: superclasses, functions and first releases of members by class.

    A class's own release stands under the empty member name.
    """

    superclasses: dict[str, str] = field(default_factory=dict)
    members: dict[str, dict[str, str]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)


def initializer(parameters: str) -> str:
    """ "frame: CGRect; style: Style;" is initWithFrameStyle."""
    names = re.findall(r"(\w+): ", parameters)
    return "initWith" + "".join(name[:1].upper() + name[1:] for name in names)


def read_typings(folder: Path) -> Typings:
    typings = Typings()
    for path in sorted(folder.glob("*.d.ts")):
        since = ""
        members: dict[str, str] = {}
        for line in path.read_text().splitlines():
            if release := re.search(r"@since (\d+\.\d+)", line):
                since = release[1]
                continue
            if head := re.match(
                r"(?:declare class|interface) (\w+)(?:<[^>]*>)?(?: extends (\w+))?", line
            ):
                members = typings.members.setdefault(head[1], {})
                members.setdefault("", since)
                typings.superclasses.setdefault(head[1], head[2] or "")
            elif function := re.match(r"declare function (\w+)", line):
                typings.functions.add(function[1])
            elif variable := re.match(r"declare var (\w+)", line):
                typings.variables.add(variable[1])
            elif parameters := re.match(r"\s+constructor\(o: \{ (.*) \}\);", line):
                members.setdefault(initializer(parameters[1]), since)
            elif member := re.match(r"\s+(?:static )?(?:readonly )?(\w+)\??[(<:]", line):
                members.setdefault(member[1], since)
            elif not line.strip() or line.strip().startswith(("*", "/*")):
                continue
            since = ""
    return typings


def newest(*releases: str) -> str:
    """The latest of several release numbers; empty ones are ignored."""
    known = [release for release in releases if release]
    return max(known, key=lambda text: tuple(map(int, text.split("."))), default="")


def method_fact(declaration: Declaration, api: Api, typings: Typings) -> dict[str, object] | None:
    owner, name = declaration.owner, declaration.name
    members = typings.members.get(owner, {})
    script = script_name(name[1:])
    release = newest(members.get("", ""), members.get(script, ""))
    fact: dict[str, object] = {"ios": release} if release else {}
    signature = method_signature(api, owner, name)
    if signature is not None:
        fact["type"] = signature
    elif script not in members:
        return None
    return fact


def fact_of(declaration: Declaration, api: Api, typings: Typings) -> dict[str, object] | None:
    """What the SDK says about a declaration; None if it has none."""
    owner, name = declaration.owner, declaration.name
    if declaration.kind == "method":
        return method_fact(declaration, api, typings)
    if declaration.kind == "class":
        if owner in api.classes:
            return {"super": api.classes[owner].superclass}
        return {"super": typings.superclasses[owner]} if owner in typings.superclasses else None
    if declaration.kind == "protocol":
        return {} if owner in api.protocols or owner in typings.members else None
    if declaration.kind == "function":
        if name in api.functions:
            return {"type": api.functions[name]}
        return {} if name in typings.functions else None
    if declaration.kind == "variable":
        return {} if name in typings.variables else None
    value = constant_value(api, declaration)
    return None if value is None else {"value": value}


def main() -> None:
    macos, ios, clang = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    binary = max(macos.rglob("NativeScript"), key=lambda path: path.stat().st_size)
    declarations = stub_declarations(clang, FRAMEWORKS)
    api, typings = read_api(binary), read_typings(ios / "lib/ios/objc-x86_64")
    found = {d.where: fact_of(d, api, typings) for d in declarations}
    sources = ["@nativescript/macos-node-api 0.4.0", "@nativescript/types-ios 9.1.2"]
    rows = ",\n".join(
        f"  {json.dumps(where)}: {json.dumps(fact, sort_keys=True)}"
        for where, fact in sorted(found.items())
        if fact is not None
    )
    text = f'{{\n "facts": {{\n{rows}\n }},\n "sources": {json.dumps(sources)}\n}}\n'
    (HERE / "apple_api.json").write_text(text)


if __name__ == "__main__":
    main()
