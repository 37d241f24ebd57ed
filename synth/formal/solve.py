"""Proof of goals by ABC: SAT sweeping."""

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from importlib.util import find_spec
from pathlib import Path

from support.extras import need
from support.files import write_file
from support.processes import run_tool
from support.scratch import scratch_folder

from .aig import AndGraph, demanded, extract, is_refuted, sharpened, simulate, write_aiger
from .cut import ProofError

#: Conflicts after which ABC gives up on a goal.
_CONFLICTS = 1_000_000
#: Goals per call of ABC: enough to share their common logic.
_TOGETHER = 16
#: Further rounds of sharpening for split goals: the assumption of one round leaves a condition on a
#: single node, which the next round can assume too.
_ROUNDS = 2


#: Goals that fail, and the inputs that are 1 then, all by name.
Failure = tuple[tuple[str, ...], tuple[str, ...]]


def solve(
    graph: AndGraph,
    goals: Iterable[str],
    cases: Sequence[Mapping[str, bool]],
    progress: Callable[[int, int], None],
    apart: Set[str],
) -> list[Failure]:
    """Show that ``goals``, outputs of ``graph``, are never 1.

    Parameters:
        graph: the circuit. goals: outputs.
        cases: values of some inputs; goals are shown for each case, one after the other.
        progress: called with the number of finished goals of all cases, and their total.
        apart: goals that are cases of others.

    Returns:
        An example for each goal that fails; several goals may share one.

    Raises:
        ProofError: ABC can't be run, or gave up.
    """
    left = list(goals)
    nodes = {name: node for node, name in enumerate(graph.inputs, 1)}
    failures: list[Failure] = []
    done, every = 0, len(left) * len(cases)
    for case in cases:
        part = graph
        if case:
            fixed = {nodes[name]: value for name, value in case.items() if name in nodes}
            part = extract(graph, left, fixed)
        groups: dict[tuple[frozenset[tuple[int, bool]], bool], list[str]] = defaultdict(list)
        for goal in left:
            if part.outputs[goal] != 0:
                groups[frozenset(demanded(part, goal).items()), goal in apart].append(goal)
        done += len(left) - sum(len(group) for group in groups.values())
        true_inputs = tuple(name for name, value in case.items() if value)
        for (inputs, _), group in sorted(groups.items(), key=lambda item: len(item[1])):
            alone = sharpened(extract(part, group, dict(inputs)), group)
            for _ in range(_ROUNDS if apart >= set(group) else 0):
                alone = sharpened(alone, group)
            hard = [goal for goal in group if not is_refuted(alone, goal)]
            demands = {graph.inputs[node - 1] for node, value in inputs if value}
            failures += (
                (goals, tuple(dict.fromkeys((*true_inputs, *sorted(demands), *ones))))
                for goals, ones in _solve(extract(alone, hard, {}))
            )
            done += len(group)
            progress(done, every)
        failed = {goal for goals, _ in failures for goal in goals}
        left = [goal for goal in left if goal not in failed]
    return failures


def _solve(graph: AndGraph) -> list[Failure]:
    failures: list[Failure] = []
    left = [goal for goal, literal in graph.outputs.items() if literal != 0]
    while left:
        values = _check(extract(graph, left[:_TOGETHER], {}))
        if values is None:
            left = left[_TOGETHER:]
            continue
        nodes = simulate(graph, values)
        outputs = graph.outputs
        failing = [goal for goal in left if nodes[outputs[goal] >> 1] ^ (outputs[goal] & 1)]
        if not failing:
            raise ProofError(f"ABC's example does not violate {left[0]}")
        read = _support(extract(graph, failing, {}))
        ones = tuple(
            name
            for node, (name, one) in enumerate(zip(graph.inputs, values, strict=True), 1)
            if one and node in read
        )
        failures.append((tuple(failing), ones))
        left = [goal for goal in left if goal not in failing]
    return failures


def _support(graph: AndGraph) -> set[int]:
    """Nodes that the gates and outputs of ``graph`` read, including the inputs that matter."""
    every = [literal for pair in graph.gates for literal in pair]
    return {literal >> 1 for literal in (*every, *graph.outputs.values())}


def _check(graph: AndGraph) -> list[bool] | None:
    """None if no output of ``graph`` can be 1, otherwise inputs for which one is."""
    with scratch_folder("proof") as folder:
        write_file(folder / "goal.aig", write_aiger(graph))
        said = run_abc(folder, f"&r goal.aig; &cec -m -C {_CONFLICTS}")
        if "Networks are equivalent" in said:
            return None
        said = run_abc(folder, "read_aiger goal.aig; iprove; write_cex example")
        example = folder / "example"
        if "UNSATISFIABLE" in said:
            return None
        if not example.is_file():
            raise ProofError(f"ABC gave up: {' '.join(said.split())[-200:]}")
        digits = example.read_text(encoding="ascii").strip()
        return [digit == "1" for digit in digits[: len(graph.inputs)]]


def run_abc(folder: Path, script: str) -> str:
    """ABC's output from ``script`` in ``folder``.

    Raises:
        ProofError: ABC can't be run.
    """
    need("pyosys", "proofs")
    spec = find_spec("pyosys")
    assert spec is not None
    assert spec.origin is not None
    abc = Path(spec.origin).parent / "yosys-abc"
    try:
        done = run_tool(
            [str(abc), "-c", script],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise ProofError(f"{abc}: {error.strerror}") from error
    return done.stdout.decode(errors="replace")
