"""Runs the examples of README.md and docs/: what a page shows is what a reader gets.

The blocks of a page run in order, in one temporary folder:

- `python`: in one namespace for the page; with prompts, the output is compared as doctest does;
- `console`: each line after a dollar sign runs, the lines below it are the expected output, where
  three dots stand for anything; a command without expected lines only has to succeed;
- `bash`: the block runs as one script, which has to succeed;
- `yaml` and `json` with a title: written to the file of that name.

A block after the comment `not-tested: reason` is left alone. After the comment `exits-with: 2`, the
last command of the block has to end so.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [path for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if path.exists()]

RUNNABLE = {"python", "console", "bash"}
SHOWN = {"ini", "json", "math", "text", "toml", "yaml"}

# They change the machine or take minutes.
FOREIGN_COMMAND = re.compile(r"(?:^|[;&|(]\s*)(make|pip|git|uv|uvx|apt-get|sudo|pre-commit)\b")
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)(?P<rest>[^`]*)$")
COMMENT = re.compile(r"^\s*<!-- (not-tested|exits-with): *(.*?) *-->\s*$")
TITLE = re.compile(r'title="([\w-]+(?:\.[\w-]+)*)"')
COMMAND_TIMEOUT_S = 300


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page, and what the comment above it says."""

    page: str
    line: int
    language: str
    title: str
    text: str
    not_tested: str | None
    exit_code: int

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def does_something(self) -> bool:
        is_file = self.language in {"json", "yaml"} and bool(self.title)
        return self.not_tested is None and (self.language in RUNNABLE or is_file)


def read_blocks(page: str, text: str) -> list[Block]:
    blocks, lines, said = [], text.splitlines(), dict[str, str]()
    numbered = iter(enumerate(lines, start=1))
    for number, line in numbered:
        if comment := COMMENT.match(line):
            said[comment[1]] = comment[2]
        elif fence := FENCE.match(line):
            body = []
            for _, inner in numbered:
                if inner.strip() == fence["ticks"]:
                    break
                body.append(inner.removeprefix(fence["indent"]))
            else:
                pytest.fail(f"{page}:{number}: the block is not closed")
            title = TITLE.search(fence["rest"])
            blocks.append(
                Block(
                    page=page,
                    line=number,
                    language=fence["language"],
                    title=title[1] if title else "",
                    text="".join(f"{row}\n" for row in body),
                    not_tested=said.get("not-tested"),
                    exit_code=int(said.get("exits-with", "0")),
                )
            )
            said = {}
        elif line.strip():
            said = {}
    return blocks


def run_page(blocks: list[Block], folder: Path) -> None:
    """Run the blocks in order; the current folder has to be `folder` already."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        if not block.does_something:
            continue
        if block.language == "python":
            run_python(block, names)
        elif block.language == "console":
            run_console(block, folder)
        elif block.language == "bash":
            run_command(block, block.text, block.exit_code, folder)
        else:
            (folder / block.title).write_text(block.text, encoding="utf-8")


def run_python(block: Block, names: dict[str, object]) -> None:
    if not re.search(r"^>>> ", block.text, flags=re.MULTILINE):
        # Empty lines in front, so that a traceback shows the line of the page.
        code = compile("\n" * block.line + block.text, block.page, "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102
        return
    example = doctest.DocTestParser().get_doctest(block.text, {}, block.page, None, block.line)
    example.globs = names
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed = runner.run(example, out=report.append, clear_globs=False).failed
    assert not failed, f"{block.where}\n{''.join(report)}"


def run_console(block: Block, folder: Path) -> None:
    session: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            session.append((line[2:], []))
        else:
            assert session, f"{block.where}: a console block begins with a command, '$ ...'"
            session[-1][1].append(line)
    for index, (command, expected) in enumerate(session):
        is_last = index == len(session) - 1
        got = run_command(block, command, block.exit_code if is_last else 0, folder)
        want = tidy("\n".join(expected))
        if want.strip():
            same = doctest.OutputChecker().check_output(want, tidy(got), doctest.ELLIPSIS)
            assert same, f"{block.where}: $ {command}\n--- expected\n{want}--- got\n{tidy(got)}"


def run_command(block: Block, command: str, exit_code: int, folder: Path) -> str:
    foreign = FOREIGN_COMMAND.search(command)
    assert not foreign, f"{block.where}: mark it not-tested, it runs {foreign and foreign[1]}"
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "TERM": "dumb",
    }
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=COMMAND_TIMEOUT_S,
    )
    ended = f"{block.where}: $ {command}\nended with {run.returncode}, not {exit_code}"
    assert run.returncode == exit_code, f"{ended}\n{run.stdout}"
    return run.stdout


def tidy(output: str) -> str:
    """Without the spaces and empty lines that nobody sees at the ends."""
    return "\n".join(line.rstrip() for line in output.strip("\n").splitlines()) + "\n"


BLOCKS = {
    str(path.relative_to(ROOT)): read_blocks(
        str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    )
    for path in PAGES
}


LONG = ("docs/guides/reproduce.md",)
"""Pages whose examples last long, while other tests run what they show."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in LONG else [])
        for page, blocks in BLOCKS.items()
        if any(b.does_something for b in blocks)
    ],
)
def test_examples_of_the_page_do_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(BLOCKS[page], tmp_path)


def test_every_block_names_a_known_language_and_every_exemption_a_reason() -> None:
    blocks = [block for page in BLOCKS.values() for block in page]
    unknown = [b.where for b in blocks if b.language not in RUNNABLE | SHOWN]
    assert unknown == [], f"known: {sorted(RUNNABLE | SHOWN)}"
    assert [b.where for b in blocks if b.not_tested == ""] == []


GOOD_PAGES = {
    "names last over the blocks of a page": "```python\na = 1\n```\n```python\nassert a == 1\n```",
    "prompts are compared": "```python\n>>> 1 + 1\n2\n```",
    "prompts see earlier names": "```python\na = 2\n```\n```python\n>>> a\n2\n```",
    "the page's Python runs": "```console\n$ python -c 'import thalweg; print(6 * 7)'\n42\n```",
    "dots stand for anything": "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n```",
    "a command may go on": "```console\n$ echo a \\\n  b\na b\n```",
    "files last from block to block": (
        '```yaml title="a.yaml"\nkey: 1\n```\n```console\n$ cat a.yaml\nkey: 1\n```\n'
        "```python\nimport pathlib\nassert pathlib.Path('a.yaml').read_text() == 'key: 1\\n'\n```"
    ),
    "a foreseen failure": "<!-- exits-with: 2 -->\n```console\n$ exit 2\n```",
    "an exemption": "<!-- not-tested: it fails -->\n\n```python\n1 / 0\n```",
    "indented in a list": "1. first\n\n    ```python\n    assert True\n    ```",
}

BAD_PAGES = {
    "python raises": "```python\nassert False\n```",
    "prompt's output differs": "```python\n>>> 1 + 1\n3\n```",
    "command fails": "```console\n$ false\n```",
    "command fails in the middle of a pipe": "```console\n$ false | true\n```",
    "bash fails before its end": "```bash\nfalse\ntrue\n```",
    "console's output differs": "```console\n$ echo b\na\n```",
    "console's output is longer": "```console\n$ printf 'a\\nb\\n'\na\n```",
    "command succeeds against the promise": "<!-- exits-with: 2 -->\n```console\n$ true\n```",
    "command ends otherwise": "<!-- exits-with: 2 -->\n```console\n$ exit 1\n```",
    "command of the machine": "```console\n$ true && make test\n```",
    "console without a command": "```console\nhello\n```",
    "exemption of another block": "<!-- not-tested: no -->\ntext\n```python\n1 / 0\n```",
}


@pytest.mark.parametrize("text", GOOD_PAGES.values(), ids=GOOD_PAGES)
def test_good_page_passes(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = read_blocks("page.md", text)
    assert blocks
    run_page(blocks, tmp_path)


@pytest.mark.parametrize("text", BAD_PAGES.values(), ids=BAD_PAGES)
def test_bad_page_fails(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ArithmeticError)):
        run_page(read_blocks("page.md", text), tmp_path)


def test_open_block_is_refused() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:2: the block is not closed"):
        read_blocks("page.md", "text\n```python\n1 / 0\n")
