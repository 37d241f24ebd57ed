"""Whole networks on the Verilog of a small chip, driven through its AXI ports, beside the timing
model; and checkpoints of interrupted runs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.networks import measure_by_vault, measure_network
from bench.sequences import measure_sequence
from isa.image import DramImage
from microkernels.common.errors import KernelError
from microkernels.data.networks import photographs, usual_network_weights
from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.network import Conv, Dense, ElementWise, MapSize, Network, Pool
from microkernels.runtime.job import KernelOutcome
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim import checkpoint as checkpoints
from sim_tb.cosim.checkpoint import Checkpoint
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import chip_preset
from support.cache import ResultCache

TINY = chip_preset("tiny")
NETWORK = Network(
    input=MapSize(12, 12, 3),
    layers=(
        Conv(name="conv1", filters=16, padding=1, fraction=12),
        Conv(name="conv2", filters=16, padding=1, fraction=12),
        Pool(name="pool"),
        Dense(name="fc", outputs=10, fraction=12, relu=False),
    ),
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Other tests run on the other processors, and threads of the model wait for each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {0})
        yield


@pytest.fixture(scope="module")
def job() -> NetworkJob:
    return network_job(
        NETWORK,
        usual_network_weights(NETWORK),
        photographs(NETWORK.input),
        engines=ChipEngines.of(TINY),
    )


@pytest.fixture(scope="module")
def modelled(job: NetworkJob) -> KernelOutcome:  # type: ignore[type-arg]
    return run_on(job, TINY, on="model", preload=True)


def test_a_network_on_verilog_is_exact_and_takes_the_models_cycles(
    job: NetworkJob,
    modelled: KernelOutcome,  # type: ignore[type-arg]
) -> None:
    verilog = run_on(job, TINY, preload=True)
    assert verilog.match
    assert modelled.match
    assert {name: run.cycles for name, run in verilog.results.items()} == {
        name: run.cycles for name, run in modelled.results.items()
    }
    assert [job.step_of(name) for name in verilog.results] == [
        ("conv1", False),
        ("conv2", True),
        ("conv2", False),
        ("pool", False),
        ("fc", True),
        ("fc", False),
    ]


@pytest.mark.parametrize("stop", ["conv2", "fc inputs"])
def test_an_interrupted_run_goes_on_and_takes_the_same_cycles(
    job: NetworkJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    begun: list[str] = []

    def until(name: str) -> None:
        if name == stop:
            raise KeyboardInterrupt
        begun.append(name)

    def run(folder: str, begins: object = begun.append) -> KernelOutcome:  # type: ignore[type-arg]
        return run_on(
            job,
            TINY,
            on="model",
            preload=True,
            checkpoint=Checkpoint(tmp_path / folder / "file", "key"),
            begins=begins,  # type: ignore[arg-type]
        )

    whole = run("whole")
    begun.clear()
    with pytest.raises(KeyboardInterrupt):
        run("broken", until)
    before = list(begun)
    begun.clear()
    resumed = run("broken")
    assert begun[0] == stop
    assert [*before, *begun] == list(whole.results)
    assert resumed.match
    assert {name: each.cycles for name, each in resumed.results.items()} == {
        name: each.cycles for name, each in whole.results.items()
    }
    assert [path.name for path in (tmp_path / "broken").iterdir()] == ["file"]
    Checkpoint(tmp_path / "broken" / "file", "key").remove()
    assert not list((tmp_path / "broken").iterdir())


def damaged(content: bytes) -> list[bytes]:
    """Contents that are no checkpoint of the job."""
    head, _, body = content.partition(b"\n")
    known = json.loads(head)
    other = [
        {**known, "format": 0},
        {**known, "key": "another"},
        {**known, "results": {"conv1": {}}},
        {**known, "results": [1]},
        {name: value for name, value in known.items() if name != "digest"},
        [1],
    ]
    return [
        b"",
        b"{}",
        head[:-5],
        content[:-1],
        content[:-40] + b"\xff" * 40,
        head + b"\n",
        *(json.dumps(each).encode() + b"\n" + body for each in other),
    ]


def test_a_checkpoint_that_is_damaged_or_of_another_run_counts_as_missing(
    job: NetworkJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_SECONDS", 0.0)
    file = tmp_path / "file"
    checkpoint = Checkpoint(file, "key")
    whole = run_on(job, TINY, on="model", preload=True, checkpoint=checkpoint)
    content = file.read_bytes()
    with DramImage(TINY.memory_bytes) as image:
        assert list(checkpoint.load(image)) == list(whole.results)
    for wrong in damaged(content):
        file.write_bytes(wrong)
        with DramImage(TINY.memory_bytes) as image:
            assert checkpoint.load(image) == {}
            assert not list(image.blocks())
    file.unlink()
    file.mkdir()
    with DramImage(TINY.memory_bytes) as image:
        assert checkpoint.load(image) == {}
        with pytest.warns(UserWarning, match="no checkpoint could be written"):
            checkpoint.save(image, dict(whole.results))


def test_an_instruction_that_the_engines_lack_is_reported_before_any_launch() -> None:
    network = Network(
        input=MapSize(8, 8, 1),
        layers=(
            Conv(name="conv", filters=4, fraction=12),
            ElementWise(name="gate", function="sigmoid", fraction=8),
        ),
    )
    job = network_job(
        network,
        usual_network_weights(network),
        np.zeros((1, 8, 8, 1), int),
        engines=ChipEngines.of(TINY),
    )
    begun: list[str] = []
    with pytest.raises(KernelError, match=r"network, gate: the program needs v\.sigmoid"):
        run_on(job, TINY, on="model", preload=True, begins=begun.append)
    assert not begun


def test_a_run_with_checkpoints_has_to_be_preloaded(job: NetworkJob, tmp_path: Path) -> None:
    with pytest.raises(CosimError, match="must be preloaded"):
        run_on(job, TINY, checkpoint=Checkpoint(tmp_path, "key"))


def test_differing_activations_are_reported_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import networks as measured

    monkeypatch.setitem(measured.NETWORKS, "test", NETWORK)  # type: ignore[arg-type]
    monkeypatch.setattr(ResultCache, "get", lambda self, key, make: json.loads(json.dumps(make())))
    run = measure_network("test", TINY)
    assert run.job.expected.size == 2 * 12 * 12 * 16 + 6 * 6 * 16 + 10
    assert set(run.layers) == {"conv1", "conv2", "pool", "fc"}
    assert run.ms == pytest.approx(sum(map(sum, run.layers.values())))
    gbs, ms = measure_by_vault("test", TINY)
    assert ms == pytest.approx(run.ms, rel=0.01)
    assert gbs == pytest.approx(run.gbs, rel=0.1)
    right = NetworkJob.of_layers
    count = iter(range(9))

    def wrong(self: NetworkJob, outputs: object) -> object:
        found = right(self, outputs)  # type: ignore[arg-type]
        return {name: values + (name == "pool") * next(count) for name, values in found.items()}

    monkeypatch.setattr(KernelOutcome, "match", property(lambda self: False))
    monkeypatch.setattr(NetworkJob, "of_layers", wrong)
    with pytest.raises(CosimError, match="activations differ, first in layer pool"):
        measure_network("test", TINY)


@pytest.mark.slow
def test_a_sequence_on_verilog_is_exact_and_takes_the_models_cycles() -> None:
    verilog, model = (measure_sequence("little", TINY, on=on) for on in ("rtl", "model"))
    assert verilog.cycles == model.cycles
    assert verilog.counters == model.counters
