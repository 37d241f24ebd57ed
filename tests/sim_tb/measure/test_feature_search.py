"""The genetic search for an agent: its candidates, its generations, and what it keeps on disk."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory.agent.config import SLOTS, AgentConfig
from memory.agent.features import FEATURES
from sim_tb.measure.agents import feature_search
from sim_tb.measure.agents.feature_search import (
    CANDIDATES,
    Candidate,
    Generation,
    app,
    cost,
    next_generation,
    random_candidate,
    search,
    without_each_feature,
)


def _simple(agent: AgentConfig) -> float:
    """A cost with one best agent: few features, none of them "reads", and short epochs."""
    return len(agent.features) + ("reads" in {one.name for one in agent.state}) + agent.epoch / 16


class _Judge:
    """:func:`_simple`, which remembers what it judged."""

    def __init__(self) -> None:
        self.judged: list[AgentConfig] = []

    def __call__(self, agent: AgentConfig) -> float:
        self.judged.append(agent)
        return _simple(agent)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Judge:
    found = _Judge()
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    monkeypatch.setattr(feature_search, "cost", found)
    monkeypatch.setattr(feature_search, "_surroundings", lambda: "")
    return found


def _generation(number: int, ranked: list[Candidate], best: list[Candidate]) -> Generation:
    return Generation(
        number, tuple((one, 1.0) for one in ranked), tuple((one, 0.5) for one in best)
    )


def test_candidates_are_agents_of_1_to_8_features() -> None:
    rng = random.Random(3)
    past: list[Generation] = []
    counts = set()
    for number in range(4):
        candidates = next_generation(rng, past, 60)
        assert len(candidates) == 60
        for candidate in candidates:
            agent = candidate.agent
            assert {one.name for one in agent.state} == {
                name for name, size in zip(FEATURES, candidate.buckets, strict=True) if size
            }
            counts.add(len(agent.features))
        past.append(_generation(number, candidates, candidates[:10]))
    assert counts == {*range(1, SLOTS + 1)}


def test_children_come_from_the_better_half_more_often() -> None:
    rng = random.Random(5)
    ones = [random_candidate(rng) for _ in range(50)]
    genes = [set(enumerate(one.buckets + one.rates)) for one in ones]
    children = next_generation(rng, [_generation(0, ones, ones[:10])], 500)[:490]
    likeness = [
        sum(len(set(enumerate(child.buckets + child.rates)) & one) for child in children)
        for one in genes
    ]
    assert sum(likeness[:10]) > 1.1 * sum(likeness[-10:])


def test_every_tenth_generation_has_the_best_so_far() -> None:
    rng = random.Random(7)
    best = [random_candidate(rng) for _ in range(10)]
    ranked = [random_candidate(rng) for _ in range(CANDIDATES)]
    past = [_generation(number, ranked, best) for number in range(11)]
    assert next_generation(rng, past[:10])[:10] == best
    assert not {*next_generation(rng, past)[:10]} & {*best}


def test_a_search_finds_the_best_agent(judge: _Judge) -> None:
    past = search(12, candidates=40, jobs=1)
    costs = [generation.best[0][1] for generation in past]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 1.25
    assert [generation.number for generation in past] == list(range(12))
    for generation in past:
        values = [value for _, value in generation.ranked]
        assert values == sorted(values)
    # No candidate is judged twice.
    candidates = {candidate for generation in past for candidate, _ in generation.ranked}
    assert len(judge.judged) == len(candidates)
    assert past == search(12, candidates=40, jobs=1)


def test_an_interrupted_search_goes_on(judge: _Judge) -> None:
    def interrupt(generation: Generation) -> None:
        if generation.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(5, candidates=30, jobs=1, progress=interrupt)
    first = list(judge.judged)
    judge.judged.clear()
    resumed = search(5, candidates=30, jobs=1)
    second = list(judge.judged)
    assert first
    assert second
    assert len(first) + len(second) == len(
        {candidate for generation in resumed for candidate, _ in generation.ranked}
    )
    judge.judged.clear()
    assert search(5, candidates=30, jobs=1) == resumed
    assert not judge.judged
    assert search(5, candidates=30, jobs=1, seed=2) != resumed
    assert judge.judged


def test_a_changed_memory_is_judged_anew(judge: _Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    search(1, candidates=20, jobs=1)
    count = len(judge.judged)
    monkeypatch.setattr(feature_search, "_surroundings", lambda: "other")
    search(1, candidates=20, jobs=1)
    assert len(judge.judged) == 2 * count


def test_the_command_writes_the_best(judge: _Judge, tmp_path: Path) -> None:
    file = tmp_path / "best.json"
    arguments = ["--generations", "2", "--jobs", "1", "--json"]
    result = CliRunner().invoke(app, [*arguments, str(file)])
    assert result.exit_code == 0
    assert "generation 2 of 2: best " in result.stderr
    best = json.loads(file.read_text())
    assert len(best) == 10
    assert [one["cost"] for one in best] == sorted(one["cost"] for one in best)
    assert json.loads(result.stdout) == best
    assert set(best[0]) >= {"cost", "features", "epoch", "alpha_shift"}
    missing = CliRunner().invoke(app, [*arguments, str(tmp_path / "none" / "best.json")])
    assert missing.exit_code == 2
    assert "Invalid value for --json" in missing.stderr
    assert "generation" not in missing.stderr
    assert CliRunner().invoke(app, ["--generations", "0"]).exit_code == 2


def test_a_cost_is_time_beside_first_ready_timed() -> None:
    few = AgentConfig(features=("reads", "run", "direction"))
    found = without_each_feature(few)
    assert set(found) == {"reads", "run", "direction"}
    assert found["reads"] == cost(AgentConfig(features=("run", "direction")))
    assert all(1 < value < 1.2 for value in (cost(few), *found.values()))
