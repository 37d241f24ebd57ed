"""Genetic search for what the agent of a vault's scheduler should look at, on the timing model.

``python -m sim_tb.measure.agents.feature_search --generations 30``

As RLWS does: generations of 100 candidates, 90 by crossover at one point with a mutation at most,
10 at random; every tenth generation the 10 best so far are among them. A candidate is a set of
features, each with 2, 4 or 8 buckets, and the agent's rates. Parents are drawn with a weight that
falls with their rank.

Costs of each generation are cached in the build folder, so that an interrupted search goes on
where it was.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from os import cpu_count
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.console import Console

from memory.agent.config import SLOTS, AgentConfig
from memory.agent.features import FEATURES
from memory.config import VaultConfig
from sim_tb.measure.schedulers import MIXES, measure_alone, measure_policy, policy_vault
from sim_tb.runner.cache import Kept, fingerprint, source_digest
from sim_tb.timed.vault.traffic_model import run_traffic_model
from support.command import run_command
from support.files import write_atomically

__all__ = [
    "CANDIDATES",
    "RATES",
    "SEARCHED",
    "Candidate",
    "Generation",
    "app",
    "cost",
    "next_generation",
    "random_candidate",
    "search",
    "without_each_feature",
]

app = typer.Typer(add_completion=False)

#: Mixes by which candidates are judged; the others are for the winners.
SEARCHED = ("sequential_random_25", "random_mixed", "unlike", "applications")
#: Accesses of each requester, and the first requester's seeds: an agent that explores little may
#: learn well from one and badly from another.
_ACCESSES, _SEEDS = 4_000, (101, 201, 301)
#: Candidates of a generation, and of these at random.
CANDIDATES, _RANDOM = 100, 10
#: The best so far, and the generations after which they are among the next one.
_BEST, _EVERY = 10, 10
#: Folders whose code decides a cost; what is around them shows in the figures of two policies.
_ROOMS = ("memory/agent", "memory/controller", "sim_tb/timed/vault")

#: Thresholds of each feature with 2, 4 and 8 buckets.
_BUCKETS: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "reads": ((4,), (2, 4, 8), (1, 2, 3, 4, 6, 8, 12)),
    "writes": ((4,), (1, 4, 8), (1, 2, 3, 4, 6, 8, 12)),
    "hits": ((1,), (1, 2, 4), (1, 2, 3, 4, 5, 6, 8)),
    "other_hits": ((1,), (1, 2, 4), (1, 2, 3, 4, 5, 6, 8)),
    "rows": ((1,), (1, 2, 4), (1, 2, 3, 4, 5, 6, 8)),
    "run": ((8,), (4, 8, 16), (2, 4, 6, 8, 10, 12, 16)),
    "patience": ((64,), (32, 64, 128), (8, 16, 32, 64, 96, 128, 192)),
    "direction": ((1,), (1,), (1,)),
    "queue": ((8,), (4, 8, 16), (2, 4, 8, 12, 16, 24, 30)),
    "waiting": ((8,), (2, 4, 8), (1, 2, 4, 6, 8, 10, 14)),
    "sweep": ((128,), (64, 128, 256), (32, 64, 96, 128, 192, 256, 384)),
}
#: Rates, and the values that they may have.
RATES: Mapping[str, tuple[int, ...]] = {
    "epoch": (4, 8, 16),
    "alpha_shift": tuple(range(3, 9)),
    "gamma_shift": tuple(range(3, 11)),
    "epsilon_shift": tuple(range(4, 11)),
}


@dataclass(frozen=True)
class Candidate:
    """An agent.

    Attributes:
        buckets: by feature, in the order of :data:`memory.agent.features.FEATURES`: 0 without it,
            else 1, 2 or 3 for 2, 4 or 8 buckets; 1 to 8 are above 0.
        rates: epoch, alpha_shift, gamma_shift and epsilon_shift.
    """

    buckets: tuple[int, ...]
    rates: tuple[int, ...]

    @property
    def agent(self) -> AgentConfig:
        """Its configuration, with the fewest bits of a weight that the rates allow."""
        names = tuple(
            f"{name}:{','.join(map(str, _BUCKETS[name][size - 1]))}"
            for name, size in zip(FEATURES, self.buckets, strict=True)
            if size
        )
        rates = dict(zip(RATES, self.rates, strict=True))
        bits = max(16, rates["gamma_shift"] + 2 + max(rates["alpha_shift"], 4))
        return AgentConfig(features=names, theta_bits=bits, **rates)


@dataclass(frozen=True)
class Generation:
    """A generation, its candidates from the best to the worst.

    Attributes:
        number: from 0 on.
        ranked: its candidates, each with its cost.
        best: of all so far, the ten with the least cost.
    """

    number: int
    ranked: tuple[tuple[Candidate, float], ...]
    best: tuple[tuple[Candidate, float], ...]


def random_candidate(rng: random.Random) -> Candidate:
    """Any candidate: 1 to 8 features."""
    chosen = rng.sample(range(len(FEATURES)), rng.randint(1, SLOTS))
    return Candidate(
        buckets=tuple(rng.randint(1, 3) if n in chosen else 0 for n in range(len(FEATURES))),
        rates=tuple(rng.choice(values) for values in RATES.values()),
    )


def _child(rng: random.Random, one: Candidate, other: Candidate) -> Candidate:
    """The beginning of one's genes and the end of the other's, one of which may change."""
    first, second = ((*each.buckets, *each.rates) for each in (one, other))
    point = rng.randrange(1, len(first))
    genes = [*first[:point], *second[point:]]
    features = len(FEATURES)
    if rng.random() < 0.5:
        place = rng.randrange(len(genes))
        rates = list(RATES.values())
        genes[place] = rng.choice(range(4) if place < features else rates[place - features])
    present = [number for number in range(features) if genes[number]]
    if not present:
        genes[rng.randrange(features)] = rng.randint(1, 3)
    for number in rng.sample(present, max(0, len(present) - SLOTS)):
        genes[number] = 0
    return Candidate(buckets=tuple(genes[:features]), rates=tuple(genes[features:]))


def next_generation(
    rng: random.Random, past: Sequence[Generation], candidates: int = CANDIDATES
) -> list[Candidate]:
    """So many candidates, 20 or more, after ``past``, its generations from the first on; some may
    be alike."""
    if not past:
        return [random_candidate(rng) for _ in range(candidates)]
    last = past[-1]
    parents = [candidate for candidate, _ in last.ranked]
    if len(past) % _EVERY == 0:
        parents = [candidate for candidate, _ in last.best] + parents
    weights = [1 / (1 + rank) for rank in range(len(parents))]
    children = [
        _child(rng, *rng.choices(parents, weights, k=2)) for _ in range(candidates - _RANDOM)
    ]
    if len(past) % _EVERY == 0:
        children[:_BEST] = [candidate for candidate, _ in last.best]
    return children + [random_candidate(rng) for _ in range(_RANDOM)]


@cache
def _alone(seed: int) -> dict[str, tuple[int, ...]]:
    # Traces are the same with each seed.
    mixes = [mix for mix in SEARCHED if mix in MIXES or seed == _SEEDS[0]]
    return measure_alone(mixes, accesses=_ACCESSES, seed=seed, run=run_traffic_model)


@cache
def _timed() -> dict[str, list[float]]:
    return _bandwidths(policy_vault("first-ready-timed"))


def _bandwidths(vault: VaultConfig) -> dict[str, list[float]]:
    """GB/s by mix, with each seed."""
    found: dict[str, list[float]] = {mix: [] for mix in SEARCHED}
    for seed in _SEEDS:
        run = partial(measure_policy, accesses=_ACCESSES, seed=seed, run=run_traffic_model)
        for mix, figures in run(vault, _alone(seed)).items():
            found[mix].append(figures.gbs)
    return found


def cost(agent: AgentConfig) -> float:
    """The time in which the policy "learned" with ``agent`` moves what "first-ready-timed" moves in
    1; the mean of :data:`SEARCHED`, on the timing model. Below 1, the agent is better.

    Raises:
        sim_tb.harness.traffic_runs.TrafficError: the memory did something wrong.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    timed = _timed()
    found = _bandwidths(replace(policy_vault("learned"), agent=agent))
    return fmean(
        fmean(limit / gbs for limit, gbs in zip(timed[mix], values, strict=True))
        for mix, values in found.items()
    )


def without_each_feature(agent: AgentConfig) -> dict[str, float]:
    """The cost of ``agent``, which has two features or more, without each of them, by its name;
    raises as :func:`cost`."""
    return {
        left.name: cost(
            replace(agent, features=(*agent.features[:place], *agent.features[place + 1 :]))
        )
        for place, left in enumerate(agent.state)
    }


def _surroundings() -> str:
    """What decides a cost beside the agent."""
    found = (_timed(), _bandwidths(policy_vault("learned")))
    return fingerprint(source_digest(_ROOMS), *(repr(sorted(each.items())) for each in found))


def search(
    generations: int,
    *,
    candidates: int = CANDIDATES,
    seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[Generation], None] | None = None,
) -> list[Generation]:
    """Generations of candidates, judged by :func:`cost` on so many processors.

    Parameters:
        generations: 1 or more. candidates: of each; 20 or more. seed: of everything random.
        jobs: processes; None: as many as processors.
        progress: called after each generation.

    Raises:
        sim_tb.harness.traffic_runs.TrafficError: the memory did something wrong.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    rng = random.Random(seed)
    kept = Kept("feature_search")
    surroundings = _surroundings()
    known: dict[Candidate, float] = {}
    past: list[Generation] = []
    workers = jobs or cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        judge = map if workers == 1 else partial(pool.map, chunksize=2)
        for number in range(generations):
            present = list(dict.fromkeys(next_generation(rng, past, candidates)))
            fresh = [each for each in present if each not in known]
            agents = [each.agent for each in fresh]
            key = fingerprint(surroundings, repr(agents))
            costs = kept.known(key)
            if costs is None:
                costs = list(judge(cost, agents))
                kept.keep(key, costs)
            known |= zip(fresh, costs, strict=True)
            ranked = sorted(((each, known[each]) for each in present), key=lambda one: one[1])
            best = sorted(known.items(), key=lambda one: one[1])[:_BEST]
            past.append(Generation(number, tuple(ranked), tuple(best)))
            if progress is not None:
                progress(past[-1])
    return past


@app.command()
def _main(
    generations: Annotated[int, typer.Option(help="Of 100 candidates.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default all.", min=1)] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for the best ten.", dir_okay=False)
    ] = None,
) -> None:
    """Search for features and rates of a learning scheduler; an interrupted search goes on."""
    if json_file is not None and not json_file.parent.is_dir():
        raise typer.BadParameter(f"{json_file.parent} is no folder", param_hint="--json")
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def show(found: Generation) -> None:
        (_, here), (best, least) = found.ranked[0], found.best[0]
        console.print(
            f"generation {found.number + 1} of {generations}: best {here:.4f}, so far "
            f"{least:.4f} ({' '.join(best.agent.features)})",
            soft_wrap=True,
        )

    found = search(generations, seed=seed, jobs=jobs, progress=show)
    report = [
        {"cost": round(value, 5), **asdict(candidate.agent)} for candidate, value in found[-1].best
    ]
    Console().print_json(data=report)
    if json_file is not None:
        write_atomically(json_file, json.dumps(report, indent=1).encode() + b"\n")


if __name__ == "__main__":
    run_command(app)
