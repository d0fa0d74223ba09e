from __future__ import annotations

import pytest
from tools.cli_surface import read_commands

from thalweg.cli.entry import VERBS
from thalweg.cli.old_spellings import LAST_VERSION, OLD_SPELLINGS, rewrite

# What was typed, and what is to be parsed; a case for every entry of the table.
CASES = {
    "compare --strategies": ("a n --strategies x,y", "a n --strategy x,y"),
    "demo --seconds": ("--seconds 20", "--for 20"),
    "demo --folder": ("--folder d --no-page", "--no-page d"),
    "mobility handover --folder": ("t --folder d --move 1=b", "t --move 1=b d"),
    "mobility learn --into": ("t --into p", "t --output p"),
    "mobility learn --master": ("t --master local[2]", "t --on local[2]"),
    "mobility plan --seconds": ("--seconds 9", "--for 9"),
    "mobility plan --save": ("--save p.json", "--output p.json"),
    "mobility predict --seconds": ("--seconds 9", "--for 9"),
    "mobility predict --every": ("--every 5", "--interval 5"),
    "mobility run --seconds": ("--seconds 9", "--for 9"),
    "mobility run --into": ("--into p", "--output p"),
    "mobility run --page": ("--page c.html", "--plot c.html"),
    "mobility trace --seconds": ("--seconds 9", "--for 9"),
    "mobility trace --into": ("--into p", "--output p"),
    "profile --write": ("p --write a.yaml", "p --output a.yaml"),
    "profile --repeat": ("p --repeat 3", "p --repetitions 3"),
    "profile --from": ("p --from run --format json", "p --format json run"),
    "profile --master": ("p --master local[2]", "p --on local[2]"),
    "reproduce aels --into": ("--into p", "--output p"),
    "reproduce aels --master": ("--master m", "--on m"),
    "reproduce migcep --into": ("--into p", "--output p"),
    "reproduce migcep --master": ("--master m", "--on m"),
    "reproduce migcep --repetitions": ("--repetitions 2", "--seeds 2"),
    "reproduce tsoo --into": ("--into p", "--output p"),
    "reproduce tsoo --master": ("--master m", "--on m"),
    "run --folder": ("p --folder d n --no-page", "p n --no-page d"),
    "run --keep": ("p n --keep", "p n --no-adapt"),
    "run --no-forecast": ("p n --no-forecast", "p n --forecast none"),
    "run --forecast": ("p --forecast n", "p n"),
    "schedule --trigger": ("a n --trigger -w w", "a n -w w"),
    "schedule --usage-most": ("a n --usage-most 0.5", "a n --max-usage 0.5"),
    "schedule --patience": ("a n --patience 2", "a n --consecutive 2"),
    "schedule --rest": ("a n --rest 5s", "a n --cooldown 5s"),
    "schedule --ahead": ("a n --ahead 2", "a n --horizon 2"),
    "schedule --out": ("a n --out s.parquet", "a n --output s.parquet"),
    "simulate --seconds": ("a n p --seconds 5", "a n p --for 5"),
    "simulate --beside": ("a n p --beside b:q", "a n p --also b:q"),
    "simulate --adapt": ("a n p --adapt atsoo", "a n p --strategy atsoo"),
    "simulate --rate-factor": (
        "a n p --rate-factor 1 --seed 2 --rate-factor=4",
        "a n p --seed 2 --vary rates=1,4",
    ),
    "simulate --spark": ("a n p --spark", "a n p --on local[*]"),
    "simulate --master": ("a n p --master m", "a n p --on m"),
    "simulate --out": ("a n p --out f", "a n p --output f"),
}


def test_every_entry_has_a_case() -> None:
    entries = [f"{command} {old.old}" for command, olds in OLD_SPELLINGS.items() for old in olds]
    assert sorted(entries) == sorted(CASES)


@pytest.mark.parametrize("entry", CASES)
def test_an_old_spelling_is_rewritten_with_one_warning(entry: str) -> None:
    command, _, old = entry.rpartition(" ")
    typed, parsed = CASES[entry]
    words, warnings = rewrite([*command.split(), *typed.split()])
    assert words == [*command.split(), *parsed.split()]
    [warning] = warnings
    assert warning.startswith("warning: ")
    assert old in warning
    assert LAST_VERSION in warning


@pytest.mark.parametrize(
    "entry",
    [
        f"{command} {old.old}"
        for command, spellings in OLD_SPELLINGS.items()
        for old in spellings
        if old.kind in ("rename", "position")
        and CASES[f"{command} {old.old}"][0].split()[-2] == old.old
    ],
)
def test_the_value_may_follow_an_equals_sign(entry: str) -> None:
    command, _, old = entry.rpartition(" ")
    typed, parsed = CASES[entry]
    value = typed.split()[-1]
    words, warnings = rewrite([*command.split(), *typed.split()[:-2], f"{old}={value}"])
    *before, option, _ = parsed.split()
    in_place = old not in ("--folder", "--from")
    assert words[len(command.split()) :] == (
        [*before, f"{option}={value}"] if in_place else parsed.split()
    )
    assert len(warnings) == 1


@pytest.mark.parametrize(
    "typed",
    [
        "plan app.yaml net.yaml --out x",
        "run p n --forecast none",
        "run p n --forecast=last",
        "run p n --keep=yes",
        "schedule a n --forecast seasonal",
        "profile p --from",
        "compare a n --strategy x",
        "run p n -- --folder x",
        "",
        "mobility",
    ],
)
def test_all_else_stays_as_it_is(typed: str) -> None:
    assert rewrite(typed.split()) == (typed.split(), [])


def test_arguments_after_two_dashes_keep_their_order() -> None:
    words, _ = rewrite(["run", "--folder", "d", "--keep", "--", "p", "n"])
    assert words == ["run", "--no-adapt", "--", "p", "n", "d"]


def test_what_replaces_an_old_option_exists_and_the_old_one_does_not() -> None:
    commands = {command.name: command for command in read_commands()}
    for name, spellings in OLD_SPELLINGS.items():
        options = {
            part for each in commands[name].options for n in each.names for part in n.split("/")
        }
        places = {each.metavar for each in commands[name].arguments}
        assert name.split()[0] in VERBS
        for old in spellings:
            # With a kind of forecast, it is an option of today; `run --trigger` is another one.
            assert old.old not in options or (name, old.old) == ("run", "--forecast")
            new = old.new.split(" ")[0]
            assert old.kind == "drop" or new in options | places, (name, old)


def test_an_old_spelling_still_works(thalweg, example) -> None:
    shown = thalweg("compare", "demo/app.yaml", "demo/network.yaml", "--strategies=cloud-only")
    assert shown.code == 0
    assert "cloud-only" in shown.out
    assert shown.err.startswith(
        "warning: --strategy … instead of --strategies; the old spelling ends with 0.3\n"
    )
