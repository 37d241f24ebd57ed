"""Proof that a relation of two designs is inductive, with cached results."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic

from amaranth.back import rtlil  # type: ignore[attr-defined]

from hdl.yosys import YosysError, run_yosys, yosys_version
from support.cache import ResultCache, build_folder, content_key
from support.files import write_atomically, write_file
from support.scratch import scratch_folder

from .aig import AndGraph, Part, compose, read_aiger, write_aiger
from .cut import CutDesign, ProofError, bits_of, elaborating
from .miter import Miter, build_miter
from .pipeline import Pipeline
from .relation import Relation
from .solve import Failure, solve


def graph_of(text: str, top: str) -> AndGraph:
    """The graph of a combinational module; a port of several bits has ``[n]`` after its name.

    Undefined bits, which tools may choose, are 0.

    Parameters:
        text: RTLIL. top: name of the module.

    Raises:
        ProofError: Yosys refused it.
    """
    with scratch_folder("proof") as folder:
        write_file(folder / "design.il", text)
        commands = [
            "read_rtlil design.il",
            f"hierarchy -check -top {top}",
            "proc -noopt -norom",
            "flatten -noscopeinfo",
            "opt_clean",
            "opt_expr",
            # A relation says much the same of many goals.
            "opt_merge",
            "opt_clean",
            "techmap",
            "opt_clean",
            "setundef -zero",
            "opt_merge",
            "aigmap",
            "opt_clean",
            "write_aiger -symbols design.aig",
        ]
        try:
            run_yosys(commands, purpose=f"graph of {top}", folder=Path(folder))
        except YosysError as error:
            raise ProofError(str(error)) from error
        return read_aiger((folder / "design.aig").read_bytes())


#: Part of every key: changes with the format of the cached results.
_FORMAT = "2"
#: Of graphs and results in the cache.
_FOLDER = "proofs"

#: Called with the name of the step, the amount done, and the total.
Progress = Callable[[str, int, int], None]


def silent(step: str, done: int, of: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Proof:
    """Result of a proof.

    Attributes:
        goals: number of conditions to prove. failures: counterexamples.
        assumptions: names of the assumptions.
        unpaired: registers that only the full engine has. left_out: fields of the configuration
            that differ and are not part of the proof.
        seconds: duration; 0 if cached.
    """

    goals: int
    failures: tuple[Failure, ...]
    assumptions: tuple[str, ...]
    unpaired: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether all conditions were proved."""
        return not self.failures

    def to_json(self) -> dict[str, object]:
        """The proof as plain JSON data."""
        return {
            "holds": self.holds,
            "goals": self.goals,
            "failures": [
                {"goals": list(goals), "inputs": list(inputs)} for goals, inputs in self.failures
            ],
            "assumptions": list(self.assumptions),
            "unpaired": list(self.unpaired),
            "left_out": list(self.left_out),
            "seconds": self.seconds,
        }


def joined(parts: Mapping[str, Proof]) -> Proof:
    """All ``parts`` as one proof, each goal prefixed with its part's name."""
    every = parts.values()
    return Proof(
        goals=sum(part.goals for part in every),
        failures=tuple(
            (tuple(f"{name}: {goal}" for goal in goals), inputs)
            for name, part in parts.items()
            for goals, inputs in part.failures
        ),
        assumptions=tuple(dict.fromkeys(rule for part in every for rule in part.assumptions)),
        unpaired=tuple(
            f"{name}: {register}" for name, part in parts.items() for register in part.unpaired
        ),
        left_out=(),
        seconds=round(sum(part.seconds for part in every), 1),
    )


def prove_relation(
    full: CutDesign | Pipeline,
    trimmed: CutDesign | Pipeline,
    relation: Relation,
    progress: Progress = silent,
) -> Proof:
    """Prove that ``relation`` holds after reset and after every step, or beat of a pipeline.

    Raises:
        ProofError: a proof that can't be set up, or an undecided goal.
    """
    start = monotonic()
    designs = (full, trimmed)
    cuts = [item.cut if isinstance(item, Pipeline) else item for item in designs]
    with elaborating:
        miter = build_miter(cuts[0], cuts[1], relation)
        ports = [*miter.inputs.values(), *miter.goals.values()]
        ports += [signal for side in (*miter.given, *miter.taken) for signal in side.values()]
        text = rtlil.convert(miter.module, "miter", ports=ports, emit_src=False)
    kinds = [type(item).__name__ for item in designs]
    key = _key(cuts[0].text, cuts[1].text, text, *kinds, json.dumps(miter.cases))
    proofs = ResultCache(_FOLDER)
    result = Proof(
        goals=len(miter.goals),
        failures=(),
        assumptions=tuple(relation.assumptions),
        unpaired=tuple(miter.only_full),
        left_out=(),
        seconds=0.0,
    )
    if proofs.known(key) is not None:
        return result
    graphs = []
    for number, design in enumerate(designs):
        progress("gates", number, 3)
        graphs.append(design.graph if isinstance(design, Pipeline) else graph_of_cut(design))
    graph = _composed(miter, (_graph(text, "miter"), *graphs))
    names = {signal.name: goal for goal, signal in miter.goals.items()}
    bits = {
        bit: label + bit.removeprefix(signal.name)
        for label, signal in miter.inputs.items()
        for bit in bits_of(signal.name, len(signal))
    }

    failures = tuple(
        (
            tuple(names[goal] for goal in failing),
            tuple(bits[name] for name in inputs if name in bits),
        )
        for failing, inputs in solve(
            graph, names, miter.cases, partial(progress, "goals"), miter.apart
        )
    )
    if not failures:
        proofs.keep(key, {"goals": result.goals})
    return replace(result, failures=failures, seconds=round(monotonic() - start, 1))


def graph_of_cut(cut: CutDesign) -> AndGraph:
    """The graph of ``cut``, cached."""
    return _graph(cut.text, cut.name)


def _composed(miter: Miter, graphs: tuple[AndGraph, ...]) -> AndGraph:
    """The graph of all goals, from that of ``miter`` and those of both designs."""
    driven: list[dict[str, tuple[int, str]]] = [{}, {}, {}]
    for which in (0, 1):
        for port, signal in miter.given[which].items():
            pairs = zip(bits_of(signal.name, len(signal)), bits_of(port, len(signal)), strict=True)
            driven[0] |= {inner: (which + 1, outer) for inner, outer in pairs}
        for port, signal in miter.taken[which].items():
            pairs = zip(bits_of(port, len(signal)), bits_of(signal.name, len(signal)), strict=True)
            driven[which + 1] |= {inner: (0, outer) for inner, outer in pairs}
    parts = [Part(graph, inputs) for graph, inputs in zip(graphs, driven, strict=True)]
    return compose(parts, [signal.name for signal in miter.goals.values()])


def _graph(text: str, top: str) -> AndGraph:
    target = build_folder() / _FOLDER / f"{_key(text)}.aig.gz"
    try:
        return read_aiger(gzip.decompress(target.read_bytes()))
    except (OSError, EOFError, ValueError, IndexError):
        graph = graph_of(text, top)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, gzip.compress(write_aiger(graph), compresslevel=5, mtime=0))
    return graph


def _key(*content: str) -> str:
    return content_key(_FORMAT, yosys_version(), *content)
