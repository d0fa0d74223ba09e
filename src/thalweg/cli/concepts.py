"""Which option stands for what: one concept has one option, the same in every command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["path", "duration", "text", "whole number", "number", "choice", "flag"]


@dataclass(frozen=True, slots=True)
class Concept:
    """What an option is about, its name, and what its value is."""

    about: str
    option: str
    kind: Kind


CONCEPTS = (
    # Input and output
    Concept("where a result is written: a file or a folder", "--output", "path"),
    Concept("a drawing of the result", "--plot", "path"),
    Concept("a table for people or JSON for programs", "--format", "choice"),
    Concept("a workload: rates over time", "--workload", "path"),
    Concept("events, rides or tables that are read instead of generated ones", "--data", "path"),
    Concept("a network, where it may be left out", "--network", "path"),
    Concept("the plan that runs now", "--current", "path"),
    Concept("every row, not only those that say something new", "--all", "flag"),
    Concept("another application on the same network", "--also", "path"),
    Concept("what changes on the way of a simulation", "--changes", "path"),
    Concept("when events arrive in a simulation", "--trace", "path"),
    Concept("measured service times", "--service-times", "path"),
    Concept("measured figures that a run begins with", "--profile", "path"),
    Concept("overwrite files that exist", "--force", "flag"),
    # Time
    Concept("how long something lasts", "--for", "duration"),
    Concept("the time from one observation to the next", "--interval", "duration"),
    Concept("the least time from one batch to the next", "--trigger", "duration"),
    Concept("the time that is not counted at the start", "--warm-up", "duration"),
    Concept("how long a command waits", "--within", "duration"),
    Concept("how long adaptations that can wait do so", "--cooldown", "duration"),
    Concept("when rates repeat", "--period", "duration"),
    Concept("the length of a step of moving operators", "--step", "duration"),
    Concept("how far ahead a prediction is", "--ahead", "duration"),
    Concept("the moment of a trace that is planned for", "--at", "duration"),
    Concept("the moment at which a trace begins", "--from", "duration"),
    Concept("the moment at which a trace ends", "--until", "duration"),
    Concept("how long before a move its state begins to be sent", "--lead", "duration"),
    Concept("in which time the cost of leaving falls to nothing", "--decay", "duration"),
    Concept("steps to look ahead", "--horizon", "whole number"),
    Concept("always look that far ahead, or less", "--fixed-horizon/--adaptive-horizon", "flag"),
    # How it is decided
    Concept("which strategy plans, or adapts on the way", "--strategy", "text"),
    Concept("an option of the strategy", "--option", "text"),
    Concept("which forecast of the rates", "--forecast", "choice"),
    Concept("change cuts, or never", "--adapt/--no-adapt", "flag"),
    Concept("adapt at every step", "--every-step", "flag"),
    Concept("the usage above which is adapted", "--max-usage", "number"),
    Concept("bad steps in a row before adapting", "--consecutive", "whole number"),
    Concept("only the steps, or the plan, and nothing started", "--dry-run", "flag"),
    Concept("only what the demo deploys", "--plan-only", "flag"),
    # How often, and with which numbers
    Concept("one seed", "--seed", "whole number"),
    Concept("so many seeds: 0 to N - 1", "--seeds", "whole number"),
    Concept("how far rates are drawn from those declared", "--spread", "number"),
    Concept("a swept parameter", "--vary", "text"),
    Concept("the strategy that others are tested against", "--baseline", "text"),
    Concept("how long each plan of a study is simulated", "--simulate", "duration"),
    Concept("runs with random numbers of their own", "--replications", "whole number"),
    Concept("measurements of the same thing", "--repetitions", "whole number"),
    Concept("a short form that shows that it works", "--quick", "flag"),
    Concept("about how many runs", "--limit", "whole number"),
    Concept("discard the results of an earlier call", "--restart", "flag"),
    Concept("the Spark that does the work", "--on", "text"),
    # Simulated physics
    Concept("how events arrive", "--arrivals", "choice"),
    Concept("mean lengths of bursts and of silence", "--burst", "text"),
    Concept("how service times vary", "--service", "choice"),
    Concept("how operators share a CPU", "--cpu", "choice"),
    Concept("every n-th event gets through, not random ones", "--even", "flag"),
    # Runs
    Concept("go on with a run, or not at all", "--resume", "flag"),
    Concept("how rows come to the cloud", "--link", "text"),
    Concept("what becomes of a row on which an operator fails", "--bad-rows", "text"),
    Concept("generated rows that are sent", "--feed", "text"),
    Concept("a live page, or none", "--page/--no-page", "flag"),
    Concept("the port of the page", "--port", "whole number"),
    Concept("the port of the metrics", "--metrics", "whole number"),
    Concept("the token of the page and the metrics", "--token-file", "path"),
    Concept("show the page in a browser", "--open/--no-open", "flag"),
    Concept("read all rows", "--deep", "flag"),
    Concept("do the repairs that are safe", "--repair", "flag"),
    Concept("make all but the rows that came in again", "--rebuild", "flag"),
    Concept("do not ask", "--yes", "flag"),
    # Profiles and coordinates
    Concept("rows of each source", "--rows", "whole number"),
    Concept("events per second of event time", "--rate", "number"),
    Concept("over how many sites rows are split", "--sites", "whole number"),
    Concept("the unit of times without one", "--unit", "text"),
    Concept("dimensions of the space", "--dimensions", "whole number"),
    # Moving operators
    Concept("where vehicles were", "--tracks", "path"),
    Concept("where vehicles mean to drive", "--routes", "path"),
    Concept("the roads of the routes", "--edges", "path"),
    Concept("fill gaps in tracks", "--fill-gaps", "flag"),
    Concept("a past trace to learn from", "--learn-from", "path"),
    Concept("how many vehicles are generated", "--vehicles", "whole number"),
    Concept("operator graphs between vehicles", "--instances", "whole number"),
    Concept("one of these operator graphs", "--instance", "whole number"),
    Concept("the vehicle of a source", "--source", "text"),
    Concept("the vehicle of a sink", "--consumer", "text"),
    Concept("one operator", "--operator", "text"),
    Concept("how operators follow their users", "--approach", "text"),
    Concept("what is known about where vehicles will be", "--knowledge", "text"),
    Concept("how to plan with what is uncertain", "--policy", "text"),
    Concept("how near a broker has to be", "--range", "text"),
    Concept("operators also move as one", "--together", "flag"),
    Concept("where an operator is at first", "--start", "text"),
    Concept("a site of a hand-over", "--site", "text"),
    Concept("a move to make", "--move", "text"),
    Concept("seconds of the trace in one second", "--speedup", "number"),
    Concept("the memory of each site's Spark", "--heap-mb", "whole number"),
)
"""Each option is named once."""
