"""Whole networks on the Verilog of a small chip, driven through its AXI ports, beside the timing
model; and checkpoints of interrupted runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from microkernels.data.networks import photographs, usual_network_weights
from microkernels.networks.engines import ChipEngines
from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.network import Conv, Dense, MapSize, Network, Pool
from microkernels.runtime.ring import VaultRing
from sim_tb.cosim import checkpoint as checkpoints
from sim_tb.cosim.checkpoint import Checkpoint
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import KernelOutcome, cosim_chip
from sim_tb.measure.networks import measure_network
from sim_tb.measure.sequences import measure_sequence
from soc.generate.presets import chip_preset

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
    grid = TINY.network
    return network_job(
        NETWORK,
        usual_network_weights(NETWORK),
        photographs(NETWORK.input),
        engines=ChipEngines(
            ring=VaultRing(columns=grid.columns, rows=grid.rows, address_bits=grid.address_bits),
            pes=TINY.tile.pes,
            scratchpad_bytes=TINY.pe.scratchpad_bytes,
        ),
    )


@pytest.fixture(scope="module")
def modelled(job: NetworkJob) -> KernelOutcome:  # type: ignore[type-arg]
    return cosim_chip(job.job, TINY, on="model", preload=True)


def test_a_network_on_verilog_is_exact_and_takes_the_models_cycles(
    job: NetworkJob,
    modelled: KernelOutcome,  # type: ignore[type-arg]
) -> None:
    verilog = cosim_chip(job.job, TINY)
    assert verilog.match
    assert modelled.match
    assert abs(verilog.cycles - modelled.cycles) < 0.01 * verilog.cycles
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
        return cosim_chip(
            job.job,
            TINY,
            on="model",
            preload=True,
            checkpoint=Checkpoint(tmp_path / folder, "key"),
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
    assert not list(tmp_path.rglob("*.checkpoint"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_checkpoint_of_another_job_is_not_used(job: NetworkJob, tmp_path: Path) -> None:
    (tmp_path / "other.checkpoint").write_text("{}\n")
    found = cosim_chip(
        job.job, TINY, on="model", preload=True, checkpoint=Checkpoint(tmp_path, "key")
    )
    assert found.match


def test_a_run_with_checkpoints_has_to_be_preloaded(job: NetworkJob, tmp_path: Path) -> None:
    with pytest.raises(CosimError, match="has to be preloaded"):
        cosim_chip(job.job, TINY, checkpoint=Checkpoint(tmp_path, "key"))


def test_differing_activations_are_reported_by_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    from sim_tb.measure import networks as measured

    monkeypatch.setitem(measured.NETWORKS, "test", NETWORK)  # type: ignore[arg-type]
    monkeypatch.setattr(measured.Kept, "get", lambda self, key, make: make())
    run = measure_network("test", TINY)
    assert run.activations == 2 * 12 * 12 * 16 + 6 * 6 * 16 + 10
    assert set(run.layers) == {"conv1", "conv2", "pool", "fc"}
    assert run.ms == pytest.approx(sum(map(sum, run.layers.values())))
    assert measured.NetworkRun.from_dict(run.to_dict()) == run
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
    assert abs(verilog.cycles - model.cycles) < 0.01 * verilog.cycles
