"""Formulas of the documentation become MathML that a browser shows without any help."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml")
pytest.importorskip("pymdownx")

import markdown
import yaml
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "mathml_fences.py"))
to_mathml: Callable[..., str] = TOOL["to_mathml"]

PAGES = sorted(ROOT.glob("docs/**/*.md"))
BLOCK = re.compile(r"^```math\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`#!math ([^`]+)`")


def show(text: str) -> str:
    custom = {"name": "math", "class": "math"}
    settings = {
        "pymdownx.superfences": {"custom_fences": [{**custom, "format": TOOL["show_block"]}]},
        "pymdownx.inlinehilite": {"custom_inline": [{**custom, "format": TOOL["show_inline"]}]},
    }
    return markdown.markdown(text, extensions=list(settings), extension_configs=settings)


def texts_of(mathml: str) -> list[str]:
    return [text for text in ElementTree.XML(mathml).itertext() if text.strip()]


def test_formula_is_one_well_formed_element_that_shows_its_letters() -> None:
    found = to_mathml(r"L_j = \sum_{i} \frac{1}{\mu_i - \lambda_i}", display="block")
    assert ElementTree.XML(found).tag == "{http://www.w3.org/1998/Math/MathML}math"
    assert texts_of(found) == ["L", "j", "=", "∑", "i", "1", "μ", "i", "−", "λ", "i"]


def test_fence_becomes_a_block_with_its_number_at_the_right() -> None:
    found = show("text\n\n```math\nT = \\max_j L_j \\tag{15}\n```\n")
    assert 'display="block"' in found
    assert found.count("(15)") == 1
    assert "tag" not in found
    after = found.index("</math>")
    assert found.index("(15)") > after


def test_inline_formula_stays_in_its_line() -> None:
    found = show("The rate `#!math \\lambda_i` of `code` and $5.")
    assert re.fullmatch(r"<p>The rate <math .*</math> of <code>code</code> and \$5\.</p>", found)
    assert 'display="inline"' in found


@pytest.mark.parametrize(
    "latex",
    [r"\nonsense x", r"x_1_2", r"\text{a\_b}", r"a & b", r"\begin{aligned} a &= b \end{aligned}"],
)
def test_what_has_no_translation_stops_the_build(latex: str) -> None:
    with pytest.raises(SuperFencesException, match=r"no translation|no formula"):
        show(f"```math\n{latex}\n```\n")
    with pytest.raises(InlineHiliteException, match=r"no translation|no formula"):
        show(f"`#!math {latex}`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_formula_of_the_page_is_shown_whole(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for latex in [*BLOCK.findall(text), *INLINE.findall(text)]:
        formula = re.sub(r"\\tag\{[^{}]*\}", "", latex).strip()
        assert texts_of(to_mathml(formula, display="block")), latex


def test_the_pages_on_mathematics_have_formulas() -> None:
    pages = sorted((ROOT / "docs" / "mathematics").glob("*.md"))
    assert pages
    without = [page.name for page in pages if not INLINE.search(page.read_text(encoding="utf-8"))]
    assert without == []


def test_site_uses_these_formatters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    configured = yaml.load(text, Loader=yaml.Loader)["markdown_extensions"]  # noqa: S506 - our own
    settings = {
        name: each for item in configured if isinstance(item, dict) for name, each in item.items()
    }
    (fence,) = settings["pymdownx.superfences"]["custom_fences"]
    (inline,) = settings["pymdownx.inlinehilite"]["custom_inline"]
    assert "<math" in fence["format"]("x", "math", "math", {}, None)
    assert "<math" in inline["format"]("x", "math", "math", None)
