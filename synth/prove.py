"""Proof that a trimmed processing engine does what the full one does, for what it keeps.

``docs/proofs.md`` says what is shown, under which assumptions, and how the parts make a whole.
"""

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import monotonic

from amaranth.back import rtlil  # type: ignore[attr-defined]

from hdl.config import PeConfig
from hdl.yosys import yosys_version
from pe.core import Pe

from .proof.aig import Graph, read_aiger, write_aiger
from .proof.bits import graph_of
from .proof.compose import Part, compose
from .proof.cut import Cut, cut
from .proof.engine import PROBES, engine_relation
from .proof.errors import ProofError
from .proof.miter import Miter, build_miter
from .proof.relation import Relation
from .proof.solve import Failure, solve
from .yosys import cache_folder

__all__ = ["PROVED_FIELDS", "Proof", "ProofError", "provable", "prove", "prove_relation"]

#: Fields of a configuration whose trimming is proved; the others are not part of the proof.
PROVED_FIELDS = ("instructions", "registers")
#: Part of every key: changes when what is kept does.
_FORMAT = "1"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Proof:
    """What was shown.

    Attributes:
        goals: how many conditions were to be shown. failures: examples against some of them.
        assumptions: names of what was assumed.
        unpaired: registers that only the full engine has. left_out: fields of the configuration
            that differ and are not part of the proof.
        seconds: time that it took; 0 if it was known from an earlier time.
    """

    goals: int
    failures: tuple[Failure, ...]
    assumptions: tuple[str, ...]
    unpaired: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether all of it was shown."""
        return not self.failures

    def to_json(self) -> dict[str, object]:
        """The proof as plain JSON data."""
        return {
            "holds": self.holds,
            "goals": self.goals,
            "failures": [
                {"goals": list(failure.goals), "inputs": list(failure.inputs)}
                for failure in self.failures
            ],
            "assumptions": list(self.assumptions),
            "unpaired": list(self.unpaired),
            "left_out": list(self.left_out),
            "seconds": self.seconds,
        }


def provable(full: PeConfig, trimmed: PeConfig) -> PeConfig:
    """``full`` with those fields of ``trimmed`` whose trimming is proved (:data:`PROVED_FIELDS`),
    and behavioural memories, whose contents are not part of the proof."""
    taken = {name: getattr(trimmed, name) for name in PROVED_FIELDS}
    return replace(full, sram="behavioural", **taken)


def prove(full: PeConfig, trimmed: PeConfig, progress: Progress | None = None) -> Proof:
    """Prove that ``trimmed`` does what ``full`` does, as far as :func:`provable` goes.

    Parameters:
        full, trimmed: configurations. progress: called with what is being done, how much of it is
            done, and of how much.

    Raises:
        ProofError: ``trimmed`` has instructions or registers that ``full`` lacks; or a proof that
            can't be set up.
    """
    extra = sorted(trimmed.instructions - full.instructions)
    if extra:
        raise ProofError(f"the trimmed engine has {extra[0]}, which the full one lacks")
    if trimmed.registers > full.registers:
        raise ProofError(
            f"the trimmed engine has {trimmed.registers} registers, the full one {full.registers}"
        )
    small = provable(full, trimmed)
    big = replace(full, sram="behavioural")
    left_out = tuple(
        field.name
        for field in fields(PeConfig)
        if field.name not in (*PROVED_FIELDS, "sram")
        and getattr(full, field.name) != getattr(trimmed, field.name)
    )
    cuts = []
    for config, name in ((big, "full"), (small, "trimmed")):
        if progress is not None:
            progress(f"{name} engine", 0, 1)
        cuts.append(cut(Pe(config), name, probes=PROBES))
    found = prove_relation(cuts[0], cuts[1], engine_relation(big, small), progress)
    return replace(found, left_out=left_out)


def prove_relation(
    full: Cut, trimmed: Cut, relation: Relation, progress: Progress | None = None
) -> Proof:
    """Prove that ``relation`` holds after reset and after every step.

    Raises:
        ProofError: a proof that can't be set up, or a goal that could not be decided.
    """
    start = monotonic()
    miter = build_miter(full, trimmed, relation)
    ports = [*miter.inputs.values(), *miter.goals.values()]
    ports += [signal for side in (*miter.given, *miter.taken) for signal in side.values()]
    text = rtlil.convert(miter.module, "miter", ports=ports, emit_src=False)
    key = _key(full.text, trimmed.text, text)
    target = cache_folder().parent / "proofs" / f"{key}.json"
    known = _read(target)
    rules = (*relation.assumptions,)
    result = Proof(
        goals=len(miter.goals),
        failures=(),
        assumptions=tuple(rule.name for rule in rules),
        unpaired=tuple(miter.only_full),
        left_out=(),
        seconds=0.0,
    )
    if known:
        return result
    graph = _composed(miter, text, full, trimmed, progress)
    names = {signal.name: goal for goal, signal in miter.goals.items()}
    bits = {
        bit: label + bit.removeprefix(signal.name)
        for label, signal in miter.inputs.items()
        for bit in _bits(signal.name, len(signal))
    }

    def advance(done: int, of: int) -> None:
        if progress is not None:
            progress("goals", done, of)

    failures = tuple(
        Failure(
            tuple(names[goal] for goal in failure.goals),
            tuple(bits[name] for name in failure.inputs if name in bits),
        )
        for failure in solve(graph, names, advance)
    )
    if not failures:
        _write(target, {"goals": result.goals})
    return replace(result, failures=failures, seconds=round(monotonic() - start, 1))


def _composed(miter: Miter, text: str, full: Cut, trimmed: Cut, progress: Progress | None) -> Graph:
    """The graph of all goals."""
    graphs = []
    for number, (name, source) in enumerate(
        (("miter", text), (full.name, full.text), (trimmed.name, trimmed.text))
    ):
        if progress is not None:
            progress("gates", number, 3)
        graphs.append(_graph(source, name))
    driven: list[dict[str, tuple[int, str]]] = [{}, {}, {}]
    for which in (0, 1):
        for port, signal in miter.given[which].items():
            pairs = zip(_bits(signal.name, len(signal)), _bits(port, len(signal)), strict=True)
            driven[0] |= {inner: (which + 1, outer) for inner, outer in pairs}
        for port, signal in miter.taken[which].items():
            pairs = zip(_bits(port, len(signal)), _bits(signal.name, len(signal)), strict=True)
            driven[which + 1] |= {inner: (0, outer) for inner, outer in pairs}
    parts = [Part(graph, inputs) for graph, inputs in zip(graphs, driven, strict=True)]
    return compose(parts, [signal.name for signal in miter.goals.values()])


def _graph(text: str, top: str) -> Graph:
    """The graph of module ``top``, or what is known of it from an earlier time."""
    target = cache_folder().parent / "proofs" / f"{_key(text)}.aig.gz"
    try:
        return read_aiger(gzip.decompress(target.read_bytes()))
    except (OSError, EOFError, ValueError, IndexError):
        graph = graph_of(text, top)
    _save(target, gzip.compress(write_aiger(graph), compresslevel=5, mtime=0))
    return graph


def _bits(name: str, width: int) -> list[str]:
    """Names of the bits of a port in a graph."""
    return [name] if width == 1 else [f"{name}[{bit}]" for bit in range(width)]


def _key(*content: str) -> str:
    every = json.dumps([_FORMAT, yosys_version(), *content])
    return hashlib.sha256(every.encode()).hexdigest()[:24]


def _read(path: Path) -> bool:
    try:
        return "goals" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _write(path: Path, result: dict[str, object]) -> None:
    _save(path, (json.dumps(result) + "\n").encode())


def _save(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).replace(path)
