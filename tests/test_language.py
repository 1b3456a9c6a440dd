"""Every sentence that a user or a successor reads: whole, and in plain technical English.

The one place where tests read words; the others look at codes and values. docs/glossary.md has the
terms.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nnbt import _native
from nnbt.cli import main as cli
from nnbt.cli.info import TOPICS
from nnbt.engines.mlx.bandwidth import OPS
from nnbt.engines.mpsgraph import ane
from nnbt.ladder.causes import CAUSES
from nnbt.ladder.rungs import RUNGS
from nnbt.machine.devices import DEVICES
from nnbt.pipeline.matrix import ENGINES
from nnbt.results.columns import COLUMNS
from nnbt.spec.dtypes import DTYPES
from nnbt.spec.metric import METRICS
from nnbt.spec.options import DATA, OPTIONS, options_of
from nnbt.verdict.checks import CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PRODUCT = Path(__import__("nnbt").__file__).parent
DOCS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
DOCS += sorted(path for path in ROOT.glob("docs/*.md") if path.name != "glossary.md")
COMMANDS = ((), ("conv",), ("ladder",), ("info",), ("sign-helper",))

PHRASES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\btype (--|one of|none\b|it with|a larger|a smaller|more than|less than)",
        r"(?<!there )\bis no (name|list|number|whole number|gain|path|document|program|ceiling)\b",
        r"cries wolf",
        r"a time of anything",
        r"counts? for nothing",
        r"(does|do) not count for",
        r"gave no document",
        r"that of launching",
        r"number scatters",
        r"could bring",
        r"is waited for",
        r"that can'?t be done",
        r"multiplies wrongly",
        r"a rung that can't",
        r"compiles something",
        r"leaves out columns",
        r"\bneighbours?\b",
        r"\bcan't\b",
        r"constant cost",
        r"all buffers together",
        r"round the caches?",
        r"true rate",
        r"theoretical peak",
        r"\bstolen\b",
        r"stands? for it\b",
        r"try again when idle",
        r"\b(operations|bytes) a (second|cycle|clock)\b",
        r"\bon doubles\b",
    )
]
"""What docs/glossary.md and its style rule out, and what earlier versions said."""
FRAGMENT = re.compile(r"^\S.*[\w)%`\]\"+]$")
SENTENCE = re.compile(r"^[A-Z0-9`-].*[.)]$")


def fragments() -> Iterator[tuple[str, str]]:
    """(where, text) of the tables whose texts are parts of a line."""
    for check in CHECKS:
        for name in ("looks_at", "threshold", "hazard"):
            yield f"CHECKS {check.code} {name}", getattr(check, name)
    yield from ((f"CAUSES {cause.code} advice", cause.advice) for cause in CAUSES)
    for metric in METRICS.values():
        yield from ((f"METRICS {metric.name} {of}", text) for of, text in metric.formulas.items())
    for engine in ENGINES.values():
        for cell in engine.cells:
            yield f"ENGINES {engine.name} {cell.metric}", cell.explain or engine.explain
    tables = (METRICS, DTYPES, DEVICES, OPS, RUNGS)
    for row in (*CAUSES, *COLUMNS, *(row for table in tables for row in table.values())):
        yield str(row)[:60], row.explain
    yield from (*DATA.items(), *_native.probes())


def sentences() -> Iterator[tuple[str, str]]:
    """(where, text) of the tables whose texts stand alone."""
    for command in ("run", "conv", "ladder"):
        for option in options_of(command):
            yield f"OPTIONS {command} {option.name}", option.described()
    for name, text in (*ane.STATUSES.items(), *ane.REASONS.items()):
        yield f"ane {name}", text


@pytest.mark.parametrize(("where", "text"), [*fragments()], ids=lambda value: value[:40])
def test_parts_of_a_line_are_whole(where: str, text: str) -> None:
    assert FRAGMENT.match(text), where
    assert_tidy(text)


@pytest.mark.parametrize(("where", "text"), [*sentences()], ids=lambda value: value[:40])
def test_sentences_are_whole(where: str, text: str) -> None:
    assert SENTENCE.match(text), where
    assert_tidy(text)


def assert_tidy(text: str) -> None:
    assert text == " ".join(text.split())
    assert text.count("(") == text.count(")")
    assert text.count("`") % 2 == 0
    assert ruled_out(text) == []


def ruled_out(text: str) -> list[str]:
    """The phrases in a text that are not plain technical English."""
    flat = " ".join(text.split())
    return [found.group() for phrase in PHRASES for found in phrase.finditer(flat)]


@pytest.mark.parametrize(
    "text",
    [
        "There is no GPU: type --device cpu.",
        "metric 5 is no name",
        "a benchmark that cries wolf",
        "The chain can't\nbe saved.",
        "2,048 operations a cycle",
    ],
)
def test_ruled_out_phrases_are_found(text: str) -> None:
    assert ruled_out(text)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_documentation_is_plain(path: Path) -> None:
    assert ruled_out(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_plain(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["nnbt"])
    assert cli._run([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage" in shown or "usage" in shown
    assert ruled_out(shown) == []


@pytest.mark.parametrize("topic", TOPICS)
def test_explanations_are_plain(topic: str) -> None:
    assert ruled_out(TOPICS[topic]()) == []


def words_of(source: str) -> list[str]:
    """The strings of a Python file, joined where they are written in parts, and its comments."""
    strings = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return strings + re.findall(r"#.*", source)


@pytest.mark.parametrize(
    "path", sorted(PRODUCT.rglob("*.py")), ids=lambda path: str(path.relative_to(PRODUCT))
)
def test_strings_and_comments_are_plain(path: Path) -> None:
    found = [hit for text in words_of(path.read_text(encoding="utf-8")) for hit in ruled_out(text)]
    assert found == []


@pytest.mark.parametrize(
    "path",
    sorted(path for name in ("cpp", "objc") for path in (ROOT / name).rglob("*.[chms]*")),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_native_sources_are_plain(path: Path) -> None:
    assert ruled_out(re.sub(r"\n\s*//", "", path.read_text(encoding="utf-8"))) == []


def test_every_option_is_explained_to_every_command_that_has_it() -> None:
    for name, row in OPTIONS.items():
        assert row.commands, name
        for command in row.commands:
            assert row.on(command).help, (name, command)
