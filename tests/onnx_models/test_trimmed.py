"""Vaults trimmed to compiled models."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import vip
from isa.image import DramImage
from microkernels.networks.jobs import NetworkJob
from microkernels.runtime.job import execute
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design
from support.errors import VipError
from tests.onnx_models.graphs import model
from vip.models.folder import load_folder
from vip.models.run import compiled_job, elements_of

RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a compiled model of a convolution, pooling, moves, and a matrix."""
    folder = tmp_path_factory.mktemp("little")
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("MaxPool", ["a"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Relu", ["p"], ["r"], name="relu"),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "c"], ["y"], transB=1, name="gemm"),
    ]
    constants = {
        "w": RANDOM.normal(size=(4, 2, 3, 3)),
        "b": RANDOM.normal(size=4),
        "v": RANDOM.normal(size=(5, 36)),
        "c": RANDOM.normal(size=5),
    }
    made = model(nodes, ("n", 2, 6, 6), constants)
    (folder / "little.onnx").write_bytes(made.SerializeToString())
    images = RANDOM.normal(size=(8, 2, 6, 6)).astype(np.float32)
    np.save(folder / "images.npy", images)
    vip.compile_model(folder / "little.onnx", folder / "images.npy", folder / "compiled")
    return folder


def job_of(folder: Path, images: np.ndarray) -> NetworkJob:
    compiled = load_folder(folder)
    given = {"input": images.transpose(0, 2, 3, 1)}
    return compiled_job(compiled, elements_of(compiled, given))


def test_programs_change_nothing_that_is_declared(little: Path) -> None:
    job = job_of(little / "compiled", 3 * RANDOM.normal(size=(1, 2, 6, 6)))
    spans = [span for each in job.layout.declared.values() for span in each.constants]
    assert len(spans) == len(job.launches)

    def held(memory: DramImage) -> list[bytes]:
        return [memory.read(span.start, span.size) for span in spans]

    kept: list[list[bytes]] = []
    with DramImage(job.end) as memory:
        job.prepare(memory)
        kept.append(held(memory))
        assert any(part.count(0) < len(part) for part in kept[0])

    def outputs(memory: DramImage) -> np.ndarray:
        kept.append(held(memory))
        return job.outputs(memory)

    run = execute(replace(job, outputs=outputs))  # type: ignore[arg-type]
    assert run.match
    assert kept[0] == kept[-1]


def test_a_vault_keeps_what_the_model_needs(little: Path) -> None:
    found = vip.trim_model(little / "compiled", check=False, area=False)
    full, trimmed = found.cut.full, found.cut.trimmed
    assert not found.failure
    assert trimmed.instructions < full.instructions
    assert trimmed.address_bits == full.address_bits
    assert trimmed.instruction_words < full.instruction_words
    assert trimmed.register_width < full.register_width
    assert trimmed.scratchpad_bytes <= full.scratchpad_bytes
    assert trimmed.max_vl < full.max_vl
    by_data = {bound.name for bound in found.cut.bounds if bound.basis != "proved"}
    assert by_data == {"address_bits", "arc_entries", "load_store_queue"}
    # Programs run with nothing but the instructions that are left.
    job = job_of(little / "compiled", 3 * RANDOM.normal(size=(1, 2, 6, 6)))
    assert execute(job, instructions=trimmed.instructions).match
    job.check_instructions(trimmed.instructions)
    # As fast as the full one, with as many transfers in flight; slower with fewer.
    machine = design("vault")
    cycles = {
        entries: run_on(
            job,
            replace(  # type: ignore[type-var]
                machine,
                pe=replace(
                    machine.pe,
                    arc_entries=entries,
                    load_store_queue=trimmed.load_store_queue,
                ),
            ),
            on="model",
        ).cycles
        for entries in (trimmed.arc_entries, trimmed.arc_entries - 1)
        if entries
    }
    of_full = run_on(job, machine, on="model").cycles  # type: ignore[arg-type]
    assert cycles[trimmed.arc_entries] <= of_full
    assert cycles.get(trimmed.arc_entries - 1, 1 << 30) > of_full


def test_a_vault_is_built_for_a_part_of_a_model(little: Path, tmp_path: Path) -> None:
    built = vip.build_model(
        little / "little.onnx",
        little / "images.npy",
        tmp_path / "built",
        outputs=["r"],
        shapes={"x": (1, 2, 6, 6)},
        check=False,
        area=False,
    )
    assert [output.tensor for output in built.compiled.outputs] == ["r"]
    assert (tmp_path / "built" / "verilog").is_dir()


def test_proved_sizes_leave_transfers_in_flight_alone(little: Path) -> None:
    found = vip.trim_model(
        little / "compiled", check=False, area=False, sizes=vip.Sizes(basis="proved")
    )
    assert found.cut.trimmed.arc_entries == found.cut.full.arc_entries
    assert found.cut.trimmed.load_store_queue == found.cut.full.load_store_queue


@pytest.mark.slow
def test_the_trimmed_vault_runs_the_model_bit_exactly(little: Path, tmp_path: Path) -> None:
    found = vip.trim_model(
        little / "compiled", tmp_path / "verilog", inputs=little / "images.npy", area=False
    )
    assert not found.failure
    assert found.verilog is not None
    assert 0 < found.cycles_trimmed <= found.cycles_full


def test_a_model_for_a_chip_is_refused(little: Path, tmp_path: Path) -> None:
    vip.compile_model(
        little / "little.onnx", little / "images.npy", tmp_path / "chip", preset="tiny"
    )
    with pytest.raises(VipError, match="compiled for tiny, not a vault; compile it for a vault"):
        vip.trim_model(tmp_path / "chip")
