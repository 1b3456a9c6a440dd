"""Reads the API metadata inside @nativescript/macos-node-api 0.4.0 (npm, MIT).

Its arm64 binary has a section __objc_metadata ("NSMD", version 1) that describes every class,
protocol, function and enumeration of the macOS SDK: selectors with argument and result kinds. The
layout is little-endian; a list continues while the top bit of an entry is set.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MORE, _VALUE = 1 << 31, 0x7FFFFFFF
_SECTIONS = (
    "constants",
    "enums",
    "signatures",
    "functions",
    "protocols",
    "classes",
    "structs",
    "unions",
)
_KINDS = [
    "char",
    "int",
    "short",
    "long",
    "int64",
    "uchar",
    "uint",
    "ushort",
    "ulong",
    "uint64",
    "float",
    "double",
    "uint8",
    "void",
    "cstring",
    "id",
    "proto",
    "class",
    "instancetype",
    "NSString",
    "NSMutableString",
    "Class",
    "SEL",
    "array",
    "struct",
    "ptr",
    "void*",
    "fnptr",
    "bool",
    "block",
    "uint128",
    "longdouble",
    "vector",
    "extvector",
    "complex",
    "half",
    "unichar",
]
# Flags of a member: property, read-only, class member, more to come.
_PROPERTY, _READONLY, _STATIC, _NEXT = 1, 2, 8, 0x80
_VARIADIC = 0x40


@dataclass
class Interface:
    """A class or protocol: selectors carry their sign, "+new" or "-count"."""

    superclass: str | None = None
    protocols: list[str] = field(default_factory=list)
    methods: dict[str, str] = field(default_factory=dict)


@dataclass
class Api:
    """The whole SDK."""

    classes: dict[str, Interface] = field(default_factory=dict)
    protocols: dict[str, Interface] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)


def metadata_section(binary: bytes) -> bytes:
    """The __objc_metadata section of a Mach-O file."""
    (commands,) = struct.unpack_from("<I", binary, 16)
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", binary, at)
        if command == 0x19:  # LC_SEGMENT_64
            (sections,) = struct.unpack_from("<I", binary, at + 64)
            for section in range(sections):
                header = at + 72 + 80 * section
                if binary[header : header + 16].rstrip(b"\0") == b"__objc_metadata":
                    length, offset = struct.unpack_from("<QI", binary, header + 40)
                    return binary[offset : offset + length]
        at += size
    message = "the binary has no __objc_metadata section"
    raise ValueError(message)


class _Reader:
    def __init__(self, data: bytes) -> None:
        if data[:6] != b"NSMD\x01\0":
            message = "not NSMD version 1"
            raise ValueError(message)
        self.data = data
        self.start = dict(zip(_SECTIONS, struct.unpack_from("<8I", data, 6), strict=True))
        self.signatures: dict[int, str] = {}
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def word(self) -> int:
        self.at += 4
        return int(struct.unpack_from("<I", self.data, self.at - 4)[0])

    def word_at(self, position: int) -> int:
        return int(struct.unpack_from("<I", self.data, position)[0])

    def text(self, offset: int) -> str:
        start = 38 + (offset & _VALUE)
        return self.data[start : self.data.index(b"\0", start)].decode()

    def name(self, section: str, offset: int) -> str:
        if offset & _VALUE == _VALUE:
            return "?"
        return self.text(self.word_at(self.start[section] + (offset & _VALUE)))

    def names(self, section: str) -> list[str]:
        found = []
        while True:
            word = self.word()
            found.append(self.name(section, word))
            if not word & _MORE:
                return found

    def type(self) -> tuple[str, int]:
        flags = self.byte()
        kind = _KINDS[flags & 0x3F]
        if kind == "array":
            (length,) = struct.unpack_from("<H", self.data, self.at)
            self.at += 2
            kind = f"array[{length}]{self.type()[0]}"
        elif kind == "struct":
            word = self.word()
            section = "unions" if word & _MORE else "structs"
            kind = f"struct:{self.name(section, word)}"
        elif kind in ("block", "fnptr"):
            kind = f"{kind}({self.signature(self.word())})"
        elif kind == "proto":
            kind = f"id<{','.join(self.names('protocols'))}>"
        elif kind == "class":
            word = self.word()
            kind = self.name("classes", word) + "*"
            if word & _MORE:
                kind += f"<{','.join(self.names('protocols'))}>"
        elif kind == "ptr":
            kind = self.type()[0] + "*"
        elif kind in ("NSString", "NSMutableString"):
            kind += "*"
        return kind, flags

    def signature(self, offset: int) -> str:
        """ "result (argument, argument)" of a signature; read once, blocks may nest."""
        if offset not in self.signatures:
            self.signatures[offset] = "..."
            back, self.at = self.at, self.start["signatures"] + offset
            result, flags = self.type()
            variadic = bool(flags & _VARIADIC)
            more = bool(flags & _NEXT) or variadic
            arguments = []
            while more:
                argument, flags = self.type()
                arguments.append(argument)
                more = bool(flags & _NEXT)
            self.at = back
            arguments += ["..."] if variadic else []
            self.signatures[offset] = f"{result} ({', '.join(arguments)})"
        return self.signatures[offset]

    def member(self, methods: dict[str, str]) -> bool:
        flags = self.byte()
        sign = "+" if flags & _STATIC else "-"
        if flags & _PROPERTY:
            self.word()
        selector, signature = self.word(), self.word()
        methods[sign + self.text(selector)] = self.signature(signature)
        if flags & _PROPERTY and not flags & _READONLY:
            setter, signature = self.word(), self.word()
            if setter != _VALUE:
                methods[sign + self.text(setter)] = self.signature(signature)
        return bool(flags & _NEXT)

    def section(self, name: str, end: str) -> range:
        self.at = self.start[name]
        return range(self.start[name], self.start[end])

    def read(self) -> Api:
        api = Api()
        span = self.section("classes", "structs")
        while self.at in span:
            word = self.word()
            self.word()  # the name at run time
            interface = Interface(protocols=self.names("protocols") if word & _MORE else [])
            above = self.word()
            interface.superclass = None if above & _VALUE == _VALUE else self.name("classes", above)
            more = bool(above & _MORE)
            while more:
                more = self.member(interface.methods)
            api.classes[self.text(word)] = interface
        span = self.section("protocols", "classes")
        while self.at in span:
            word = self.word()
            interface = Interface(protocols=self.names("protocols") if word & _MORE else [])
            if self.data[self.at] == 0:
                self.at += 1
            else:
                while self.member(interface.methods):
                    pass
            api.protocols[self.text(word)] = interface
        span = self.section("functions", "protocols")
        while self.at in span:
            name = self.text(self.word())
            api.functions[name] = self.signature(self.word())
        self._read_enums(api)
        return api

    def _read_enums(self, api: Api) -> None:
        span = self.section("enums", "signatures")
        while self.at in span:
            constants = api.enums.setdefault(self.text(self.word()), {})
            more = True
            while more:
                key = self.word()
                (value,) = struct.unpack_from("<q", self.data, self.at)
                self.at += 8
                constants[self.text(key)] = value
                more = bool(key & _MORE)


def read_api(binary: Path) -> Api:
    """All metadata in `binary`."""
    return _Reader(metadata_section(binary.read_bytes())).read()
