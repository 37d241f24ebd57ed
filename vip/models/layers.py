"""What the layers of a model take: the fewest cycles, those that are predicted, and, after a run,
those that were counted, with their causes, bytes and energy."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from isa.run import RunResult
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.networks.jobs import MoveStep, NetworkLayout
from microkernels.networks.layer import LANES, LAUNCH_CYCLES, MEMORY_BYTES, LayerPlan
from microkernels.networks.maps import MapSize
from microkernels.nn.conv_plan import ConvPlan
from pe.interface import PeCounter

#: Counters into exactly one of which each cycle of an engine falls; an engine that has ended, or
#: was not launched, is idle.
_CAUSES = tuple(
    counter.name for counter in PeCounter if counter.name.startswith(("ISSUED", "STALL"))
)
_IDLE = "IDLE"
#: What holds in a cycle of an engine that issues nothing.
_WAITS = {
    "STALL_FETCH": "programs start or branch",
    "STALL_REGISTER": "a register waits for memory",
    "STALL_ARC_CONFLICT": "operands are still being loaded or stored",
    "STALL_ARC_FULL": "the range check has no free entry",
    "STALL_VECTOR": "the vector unit is busy",
    "STALL_LOAD_STORE": "the load-store unit is busy",
    "STALL_DRAIN": "vectors have not ended",
    "STALL_FENCE": "memory has not confirmed all stores",
    _IDLE: "the engine has ended, or has no work",
}
#: Parts of an effort that tell which layers are alike -> their cycles, roughly.
_SHARES = {"computing": 1, "memory": 1, "launches": 500, "weights": 1, "columns": 100, "chain": 5}
_SHARES |= {"pieces": 60, "descriptions": 100, "longest": 30, "elements": 1}
#: Elements of the longest vectors that are as short as can be.
_SHORT = 2
#: Largest difference of a share with which layers are alike.
_ALIKE = 0.15
#: Largest error of a prediction that is known.
MOST_OFF = 0.25
#: Share of the moves in which their error does not matter.
_FEW = 0.1
_RECORD = Path(__file__).parent / "pace.json"
#: Layers that are named, and the share of all cycles that each must take beyond the fewest.
_NAMED = 3
_LEAST = 0.05
#: What only a run counts.
_COUNTED = ("cycles", "moves", "causes", "vector_busy", "costs", "busy", "off")


@dataclass(frozen=True, kw_only=True)
class LayerFigures:
    """A layer of a model in a run.

    Attributes:
        name: of the layer. kind: of layer. node: of the model, from which it comes.
        output: width, height and channels of its map.
        computing, memory: fewest cycles in which the lanes of all engines do its multiplications
            and additions, two per lane, and in which memories read its inputs and weights once and
            write its output.
        vectors: elements of its input that an engine reads at once: of a slice, or of several
            pixels.
        effort: what cycles are predicted from.
        launches: of its computation, as far as predicted.
        cycles, moves: that were counted, likewise; 0 before a run.
        causes: engine cycles of all of its launches by counter, and ``IDLE``; each is counted once.
        vector_busy: engine cycles in which the vector unit reads a beat.
        costs: bytes of DRAM that it reads and writes, and its microjoules by part of the machine
            (:mod:`vip.energy`).
    """

    name: str
    kind: str
    node: str
    output: MapSize
    computing: float
    memory: float
    vectors: int
    launches: int
    effort: Mapping[str, float]
    cycles: int = 0
    moves: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    vector_busy: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)

    @property
    def predicted(self) -> float:
        """Cycles of its computation."""
        return _cycles(self.kind, self.effort)

    @property
    def predicted_moves(self) -> float:
        """Cycles of the moves of its input before."""
        return _cycles("moves", self.effort)

    @property
    def known(self) -> bool:
        """Whether a similar layer has been measured, and its prediction was off by at most
        :data:`MOST_OFF`; the moves before it likewise, unless they take few of the cycles."""
        moves = self.predicted_moves
        few = moves <= _FEW * self.predicted
        computed = not self.launches or _alike(self.kind, self.effort, self.vectors)
        return computed and (few or _alike("moves", self.effort))

    @property
    def bound(self) -> float:
        """Fewest cycles."""
        return max(self.computing, self.memory)

    @property
    def taken(self) -> float:
        """Cycles with the moves before it, counted or else predicted."""
        return (self.cycles + self.moves) or (self.predicted + self.predicted_moves)

    @property
    def use(self) -> float:
        """Useful share of the lanes' cycles."""
        return self.computing / self.taken if self.taken else 0.0

    @property
    def busy(self) -> float:
        """Share of the engines' cycles in which the vector unit works; 0 before a run."""
        engine_cycles = sum(self.causes.values())
        return self.vector_busy / engine_cycles if engine_cycles else 0.0

    @property
    def off(self) -> float:
        """Predicted cycles over those that were counted, minus 1; 0 before a run."""
        counted = self.cycles + self.moves
        return (self.predicted + self.predicted_moves) / counted - 1 if counted else 0.0

    @property
    def reason(self) -> str:
        """Why it takes more than the fewest cycles: the largest part of the difference."""
        counted = bool(self.causes)
        moves = self.moves if counted else self.predicted_moves
        starts = 0 if counted else self.launches * _SHARES["launches"]
        parts = {"moves": moves, "starts": starts, "work": self.taken - moves - starts - self.bound}
        largest = max(parts, key=parts.__getitem__)
        if largest == "moves":
            return f"{moves:,.0f} cycles move its input; a map that its source can write in place"
        if largest == "starts":
            one = "its launch takes" if self.launches == 1 else f"its {self.launches} launches take"
            return f"{one} some {starts:,} cycles whatever it computes; a larger batch"
        waits = {cause: cycles for cause, cycles in self.causes.items() if cause in _WAITS}
        if waits:
            cause = max(waits, key=waits.__getitem__)
            share = waits[cause] / sum(self.causes.values())
            return f"in {share:.0%} of the engines' cycles {_WAITS[cause]}"
        if self.memory > self.computing:
            return (
                f"memories need {self.memory:,.0f} cycles for its maps and weights; a larger batch"
            )
        return f"{self.use:.0%} of the lanes' cycles are useful, with vectors of {self.vectors}"

    def to_json(self) -> dict[str, object]:
        """Plain JSON data; before a run, without what only a run counts."""
        derived = (
            "predicted",
            "predicted_moves",
            "known",
            "bound",
            "taken",
            "use",
            "busy",
            "off",
            "reason",
        )
        content = {**asdict(self), **{name: getattr(self, name) for name in derived}}
        left_out = () if self.causes else _COUNTED
        return {name: value for name, value in content.items() if name not in left_out}


@cache
def _pace() -> Mapping[str, Any]:
    """By kind of layer, and of moves: cycles of each part of the effort, fitted, and what was
    measured, as :func:`likeness` and the largest error there.

    ``python -m tests.onnx_models.exported --record`` writes them.
    """
    pace: dict[str, Any] = json.loads(_RECORD.read_text(encoding="utf-8"))
    return pace


def _cycles(kind: str, effort: Mapping[str, float]) -> float:
    pace: Mapping[str, float] = _pace().get(kind, {}).get("cycles", {"work": 1.0})
    return sum(cycles * effort.get(name, 0.0) for name, cycles in pace.items())


def likeness(effort: Mapping[str, float], cycles: float, vectors: int) -> tuple[float, ...]:
    """Shares of predicted cycles that the parts of an effort have, and how short vectors are: what
    similar layers of any size have in common.

    Parameters:
        vectors: as in :class:`LayerFigures`; 0: of moves.
    """
    scale = max(cycles, 1.0)
    shares = [min(weight * effort.get(name, 0.0) / scale, 1.0) for name, weight in _SHARES.items()]
    short = min(_SHORT / vectors, 1.0) if vectors else 0.0
    return tuple(round(share, 2) for share in (*shares, short))


def _alike(kind: str, effort: Mapping[str, float], vectors: int = 0) -> bool:
    """Whether the measured layer that is most like this one is like it, and was predicted well."""
    measured = np.array(_pace().get(kind, {}).get("measured", []))
    if not len(measured):
        return False
    mine = likeness(effort, _cycles(kind, effort), vectors)
    apart = np.abs(measured[:, :-1] - mine).max(axis=1)
    off = measured[apart == apart.min(), -1].min()
    return bool(apart.min() <= _ALIKE and off <= MOST_OFF)


def _bytes(plan: LayerPlan, batch: int, weights: Sequence[int]) -> int:
    """Fewest bytes that a layer reads and writes."""
    output = plan.output.elements
    read = sum(size.elements for size in plan.inputs)
    if plan.layer.copies:
        read = min(read, output)
    elif plan.layer.reads_regions and plan.layer.step is not None:
        read = sum(
            min(size.elements, windows.region_size(plan.output, size.channels).elements)
            for size, windows in zip(plan.inputs, plan.windows, strict=True)
        )
    return ELEMENT_BYTES * batch * (read + output) + prod(weights) * plan.layer.bits // 8


def _effort(
    layout: NetworkLayout, part: LayerPlan, bounds: Mapping[str, float], weights: Sequence[int]
) -> dict[str, float]:
    """What a layer's cycles are predicted from, for a run of the network.

    Of its computation: launches, the cycles that the planner knows, the bounds, pixels of a tile,
    its columns of an engine, operations on the elements of these one after the other, and weights.
    Of the moves before it, of an engine: launches, pieces, elements and descriptions.
    """
    batch, pes, tile = layout.plan.batch, layout.plan.engines.pes, part.tile
    launches = int(part.layer.step is not None)
    rounds = part.rounds(batch) * launches
    columns = rounds * -(-tile.width * -(-tile.channels // part.out_depth) // pes)
    per_element = part.layer.operations(part) / part.output.elements
    effort = {
        "launches": launches,
        "work": max(0.0, part.cycles - launches * LAUNCH_CYCLES),
        "pixels": rounds * tile.width * tile.height,
        "columns": columns,
        "chain": columns * per_element,
        "weights": rounds * prod(weights) / layout.plan.engines.vaults,
        **bounds,
    }
    for step in layout.steps:
        if isinstance(step, MoveStep) and step.layer_name == part.layer.name:
            shares = [
                {
                    "pieces": sum(move.pieces for move in moves) / pes,
                    "elements": sum(move.pieces * move.elements for move in moves) / pes,
                    "descriptions": len(moves) / pes,
                    "longest": max((move.pieces for move in moves), default=0),
                }
                for moves in step.moves
            ]
            effort |= {"moves": 1.0, **max(shares, key=lambda share: share["pieces"])}
    return effort


def planned_layers(
    layout: NetworkLayout, nodes: Mapping[str, str], *, runs: int = 1
) -> tuple[LayerFigures, ...]:
    """The layers of a network that are computed, before a run.

    Parameters:
        nodes: of the model, by layer. runs: how often the network runs.
    """
    plan = layout.plan
    engines, network = plan.engines, plan.network
    vaults = engines.vaults
    lanes = LANES * engines.pes * vaults
    weights = network.weights
    figures = []
    for name, part in plan.layers.items():
        layer = part.layer
        if not layer.computed:
            continue
        operations = layer.operations(part) * plan.batch
        moved = _bytes(part, plan.batch, weights.get(name, (0,)))
        bounds = {
            "computing": operations / (2 * lanes * 16 // layer.bits),
            "memory": moved / (MEMORY_BYTES * vaults),
        }
        effort = _effort(layout, part, bounds, weights.get(name, (0,)))
        figures.append(
            LayerFigures(
                name=name,
                kind=layer.kind,
                node=nodes.get(name, name),
                output=network.sizes[name],
                vectors=part.part.load_elements if isinstance(part.part, ConvPlan) else part.depth,
                launches=runs * int(effort["launches"]),
                effort={key: runs * value for key, value in effort.items()},
                computing=runs * bounds["computing"],
                memory=runs * bounds["memory"],
            )
        )
    return tuple(figures)


def counted_layers(
    planned: Iterable[LayerFigures],
    results: Iterable[tuple[str, bool, RunResult]],
    engines: int,
    costs: Mapping[str, Mapping[str, float]],
) -> tuple[LayerFigures, ...]:
    """The layers of a run.

    Parameters:
        planned: before it.
        results: layer, whether the launch moves its input, and result of each launch.
        engines: of the machine.
        costs: by layer.
    """
    cycles: Counter[tuple[str, bool]] = Counter()
    launches: Counter[str] = Counter()
    busy: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = {}
    for name, moves, result in results:
        cycles[name, moves] += result.cycles
        launches[name] += not moves
        where = causes.setdefault(name, Counter())
        for end in result.engines:
            where.update({cause: end.counters.get(cause, 0) for cause in _CAUSES})
            busy[name] += end.counters.get("VECTOR_BUSY", 0)
        where[_IDLE] += engines * result.cycles - sum(end.cycles for end in result.engines)
    return tuple(
        replace(
            layer,
            launches=launches[layer.name],
            cycles=cycles[layer.name, False],
            moves=cycles[layer.name, True],
            causes=dict(+causes.get(layer.name, Counter())),
            vector_busy=busy[layer.name],
            costs=costs.get(layer.name, {}),
        )
        for layer in planned
    )


def worth_changing(layers: Sequence[LayerFigures]) -> list[LayerFigures]:
    """The layers that take most cycles beyond the fewest, at most three, each more than 5 % of the
    cycles of all."""
    least = _LEAST * sum(layer.taken for layer in layers)
    worth = [layer for layer in layers if layer.taken - layer.bound > least]
    return sorted(worth, key=lambda layer: layer.bound - layer.taken)[:_NAMED]
