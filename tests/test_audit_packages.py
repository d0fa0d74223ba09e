"""`make audit`: whoever is vulnerable is told, and whoever could not be looked up, too."""

from __future__ import annotations

import json

import pytest
from tools import audit_packages
from tools.audit_packages import Answer, ask_package, main, read_report, read_requirements

LIST = """\
# by uv
Good_One==1.0 ; python_full_version >= '3.12' \\
    --hash=sha256:00 \\
    --hash=sha256:01
    # via somebody
good-one==0.9 ; python_full_version < '3.12' \\
    --hash=sha256:02
bad[extra]==2.0 --hash=sha256:03
"""


def page(version, *vulnerabilities):
    return {"info": {"version": version}, "vulnerabilities": list(vulnerabilities)}


def test_every_pin_is_read_also_two_of_one_name():
    wanted = [("good-one", "1.0"), ("good-one", "0.9"), ("bad", "2.0")]
    assert read_requirements(LIST.splitlines()) == wanted


def test_what_pip_audit_skipped_is_not_looked_up():
    looked_up = {"name": "Bad", "version": "2.0", "vulns": [{"id": "PYSEC-1"}]}
    skipped = {"name": "good-one", "skip_reason": "not found"}
    answers = read_report({"dependencies": [looked_up, skipped]})
    assert answers == [Answer(name="bad", version="2.0", vulnerabilities=("PYSEC-1",))]


def test_newest_version_is_known_by_the_page_of_its_package():
    known, gone = {"id": "PYSEC-2"}, {"id": "PYSEC-3", "withdrawn": "2026-01-01"}
    assert ask_package("a", "2", lambda _: page("2")) == Answer(name="a", version="2")
    answer = ask_package("a", "2", lambda _: page("2", known, gone))
    assert answer.vulnerabilities == ("PYSEC-2",)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (page("3"), "newest version alone here, which is 3"),
        ({"info": {"version": "2"}}, "KeyError('vulnerabilities')"),
        ({"info": None}, "TypeError"),
    ],
)
def test_whoever_is_not_told_of_is_unknown(answer, told):
    assert told in ask_package("a", "2", lambda _: answer).unknown


def test_page_that_cannot_be_had_is_unknown():
    def refuse(_name):
        raise OSError("no network")

    assert "no network" in ask_package("a", "2", refuse).unknown


@pytest.mark.parametrize(
    ("newest", "vulnerable", "ends_with", "closing"),
    [
        ({"good-one": "1.0", "bad": "2.0"}, (), 1, "1 not; 0 vulnerable"),
        ({"bad": "2.0"}, ({"id": "PYSEC-4"},), 1, "0 not; 1 vulnerable"),
        ({"bad": "2.0"}, (), 0, "0 not; 0 vulnerable"),
    ],
)
def test_command_fails_for_a_vulnerable_package_and_for_an_unknown_one(
    newest, vulnerable, ends_with, closing, tmp_path, monkeypatch, capsys
):
    file = tmp_path / "list.txt"
    text = LIST if "good-one" in newest else "".join(LIST.splitlines(keepends=True)[-1:])
    file.write_text(text)
    monkeypatch.setattr(audit_packages, "run_pip_audit", lambda _file: {"dependencies": []})
    monkeypatch.setattr(audit_packages, "ask_pypi", lambda name: page(newest[name], *vulnerable))
    assert main([str(file)]) == ends_with
    assert capsys.readouterr().out.rstrip().endswith(closing)


def test_pip_audit_without_an_answer_has_looked_up_nobody(tmp_path, monkeypatch):
    def answer(text):
        ran = type("Ran", (), {"stdout": text})
        monkeypatch.setattr(audit_packages.subprocess, "run", lambda *_a, **_k: ran)
        return audit_packages.run_pip_audit(tmp_path / "list.txt")

    assert answer("") == {"dependencies": []}
    assert answer(json.dumps({"dependencies": [1]})) == {"dependencies": [1]}
