"""Benchmarks of kernels and of simulation."""

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory
from unittest.mock import patch

import isa.iss.operations
import isa.iss.simulator
import isa.iss.vector_semantics
import microkernels.apps.digits
import sim_tb.cosim.digits
import sim_tb.measure.belief
import sim_tb.measure.kernel_rows
import sim_tb.measure.kernels
import sim_tb.measure.vgg
from isa.compiled.checking import CheckingSimulator
from isa.compiled.simulator import CompiledSimulator
from isa.image import DramImage
from isa.iss.simulator import Simulator
from microkernels.apps.digits import NETWORKS, load_digits, trained
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.kernel import bp_program
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import VaultRing
from sim_tb.cosim.digits import cosim_digits
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import chip_bp_job, job_key, run_on
from sim_tb.cosim.machine import Timed
from sim_tb.dut.chip import build_chip, chip_design
from sim_tb.dut.tile import tile_design
from sim_tb.measure.belief import BELIEF, belief_key
from sim_tb.measure.kernels import layer_jobs, measure_kernels
from sim_tb.measure.lstm_ese import ese_job
from sim_tb.measure.stereo import measure_stereo
from sim_tb.measure.vgg import LAYERS
from soc.chip.config import ChipConfig
from soc.generate.generate import generate, verilog
from soc.generate.presets import chip_preset, preset, tile_preset

from . import fingerprints
from .functional import compiled_parts, model_parts
from .measurement import Measurement, child_seconds, cpu_seconds

__all__ = [
    "chip",
    "digits",
    "layers",
    "made_of_chip",
    "made_of_digits",
    "made_of_layers",
    "made_of_speed",
    "made_of_stereo",
    "speed",
    "stereo",
]

_TILE = "vault"
#: Pixels and labels of the pair that a vault's Verilog solves, and iterations on both levels.
_STEREO, _STEREO_COARSE, _STEREO_FINE = (370, 250, 16), 5, 1
#: Number of test digits that run on the engine.
_IMAGES = 100
#: Pixels and labels that simulation speed is measured on, and iterations of the two runs, whose
#: difference leaves out start and end.
_SPEED, _SPEED_RUNS = (64, 48, 16), (1, 5)
#: Preset of a chip -> pixels, labels, iterations, and whether the problem is put into its memory.
#: The thesis's chip with 2 x 2 vaults solves what four tiles a vault are in full HD.
_QUARTER = "thesis_2x2"
_CHIPS = {
    "tiny": ((24, 18, 16), 2, False),
    "small": ((48, 36, 16), 2, False),
    _QUARTER: ((240, 136, 16), 1, True),
    "thesis": ((64, 34, 16), 1, True),
}


def _chip(name: str) -> ChipConfig:
    if name != _QUARTER:
        return chip_preset(name)
    thesis = chip_preset("thesis")
    return replace(thesis, network=replace(thesis.network, columns=2, rows=2))


def layers() -> Iterator[Measurement]:
    """Belief propagation, layers of VGG-16 and an LSTM on 32 vaults, from one tile of each."""
    for row in measure_kernels(tile_preset(_TILE)):
        if not row.match:
            raise CosimError(f"{row.name}: outputs differ from the golden model's")
        key = f"{row.name}_batch_{row.batch}"
        yield Measurement(key, row.ours_ms, "ms", 0.01)
        if row.cycles:
            yield Measurement(f"{key}_cycles", row.cycles, "cycles", 0.01)
            yield Measurement(f"{key}_gbs", row.gbs, "GB/s", 0.01, True)
            yield Measurement(f"{key}_busy", row.busy, "fraction", 0.01, True)
        if row.scaled == "updates":
            rate = row.cycles_per_unit
            yield Measurement(f"{key}_cycles_per_update", rate, "cycles", 0.01)


def made_of_layers() -> dict[str, str]:
    """The vault, each kernel with its data, and the scaling from a tile's time to a layer's."""
    config = tile_preset(_TILE)
    found = fingerprints.simulator("vault", tile_design(config))
    found |= fingerprints.simulator("vault-logistic", tile_design(tile_preset("vault-logistic")))
    found["time of a layer"] = fingerprints.code(
        sim_tb.measure.kernels,
        sim_tb.measure.kernel_rows,
        sim_tb.measure.belief,
        sim_tb.measure.vgg,
    )
    for name in BELIEF:
        found[f"program and data of {name}"] = fingerprints.data(belief_key(name, config))
    for layer in LAYERS:
        jobs = layer_jobs(layer, rounds=sim_tb.measure.kernels.ROUNDS, pes=config.pes)
        keys = [part for job, times in jobs for part in (job_key(job), str(times))]
        found[f"program and data of {layer.name}"] = fingerprints.data(*keys)
    found["program and data of lstm"] = fingerprints.data(job_key(ese_job(config.pes)))
    return found


def stereo() -> Iterator[Measurement]:
    """Hierarchical BP-M on the Motorcycle pair on a vault's Verilog: cycles of each phase, and the
    error against the true disparities."""
    figures, _ = measure_stereo(
        motorcycle(*_STEREO),
        tile_preset(_TILE),
        coarse_iterations=_STEREO_COARSE,
        iterations=_STEREO_FINE,
        verilog=True,
    )
    if not figures.match:
        raise CosimError("the vault's messages differ from the golden model's")
    for name, cycles in figures.cycles.items():
        yield Measurement(f"cycles_{name}", cycles, "cycles", 0.01)
    yield Measurement("cycles", sum(figures.cycles.values()), "cycles", 0.01)
    yield from _errors("370x250_5_1", figures.percent_wrong, figures.mean_error)
    for iterations in (_STEREO_FINE, 5):
        whole, _ = measure_stereo(
            motorcycle(741, 500, 16),
            tile_preset(_TILE),
            coarse_iterations=_STEREO_COARSE,
            iterations=iterations,
            verilog=False,
        )
        yield from _errors(f"741x500_5_{iterations}", whole.percent_wrong, whole.mean_error)


def _errors(name: str, percent: float, mean: float) -> Iterator[Measurement]:
    yield Measurement(f"{name}_wrong", percent, "%", 0.001)
    yield Measurement(f"{name}_mean_error", mean, "pixels", 0.001)


def made_of_stereo() -> dict[str, str]:
    """The vault, the program of each phase, and the pair."""
    config = tile_preset(_TILE)
    problem = motorcycle(*_STEREO).problem
    job = bp_levels_job(
        problem,
        _STEREO_COARSE,
        _STEREO_FINE,
        ring=VaultRing(address_bits=config.vault.address_bits),
        pes=config.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
    )
    return {
        **fingerprints.simulator("vault", tile_design(config)),
        "programs": fingerprints.programs(launch.program for launch in job.launches),
        "the pair": fingerprints.data(problem.data_costs.tobytes()),
    }


def digits() -> Iterator[Measurement]:
    """Networks for handwritten digits: of the test, the percentage known in floating point and by
    the golden model, and cycles on the engine, whose scores equal the golden model's."""
    data = load_digits()
    for name in NETWORKS:
        found = cosim_digits(trained(name), data, preset("pe"), images=_IMAGES)
        if not found.match:
            raise CosimError(f"{name}: scores differ from the golden model's")
        key = name.lower()
        yield Measurement(f"{key}_float_known", 100 * found.all_real, "%", 0.01, True)
        yield Measurement(f"{key}_golden_known", 100 * found.all_golden, "%", 0.01, True)
        yield Measurement(f"{key}_cycles", found.cycles, "cycles", 0.01)


def made_of_digits() -> dict[str, str]:
    """The engine, the digits, and the code of the networks."""
    data = load_digits()
    return {
        **fingerprints.engine("pe", preset("pe")),
        "the digits": fingerprints.data(
            data.train_images.tobytes(), data.train_labels.tobytes(), data.test_images.tobytes()
        ),
        "networks": fingerprints.code(microkernels.apps.digits, sim_tb.cosim.digits),
    }


def speed() -> Iterator[Measurement]:
    """Simulated cycles of one engine and of a vault, on Verilog and on the timing model, a second
    of a processor, start left out; and instructions of the instruction set simulator, in Python,
    compiled, and compiled with a check of hazards, in one run each."""
    problem = motorcycle(*_SPEED).problem

    tile = tile_preset(_TILE)
    engine_jobs = [bp_job(problem, iterations) for iterations in _SPEED_RUNS]
    vault_jobs = [bp_job(problem, iterations, pes=tile.pes) for iterations in _SPEED_RUNS]

    def pe(number: int, on: Timed) -> int:
        return run_on(engine_jobs[number], preset("pe"), on=on).cycles

    def vault(number: int, on: Timed) -> int:
        return run_on(vault_jobs[number], tile, on=on).cycles

    machines: dict[str, tuple[Callable[[int, Timed], int], Timed]] = {
        "pe": (pe, "rtl"),
        "vault": (vault, "rtl"),
        "pe_model": (pe, "model"),
        "vault_model": (vault, "model"),
    }
    for name, (run, on) in machines.items():
        # The first run builds the simulator.
        run(0, on)
        cycles, seconds = [], []
        for number in range(len(_SPEED_RUNS)):
            before = cpu_seconds()
            cycles.append(run(number, on))
            seconds.append(cpu_seconds() - before)
        rate = (cycles[1] - cycles[0]) / (seconds[1] - seconds[0])
        yield Measurement(f"{name}_kcycles_per_second", rate / 1000, "kcycles/s", None, True)
    job, config = bp_job(problem, _SPEED_RUNS[1]), preset("pe")
    kinds = {"python": Simulator, "compiled": CompiledSimulator, "checking": CheckingSimulator}
    for name, kind in kinds.items():
        with DramImage(1 << config.address_bits) as memory:
            job.prepare(memory)
            simulator = kind(job.program, memory, parameters=job.parameters, **config.limits)
            before = cpu_seconds()
            end = simulator.run()
            rate = end.instructions / (cpu_seconds() - before)
            if job.differing(job.outputs(memory)):
                raise CosimError(f"{job.name}: the {name} simulator differs from the golden model")
        yield Measurement(f"{name}_kinstructions_per_second", rate / 1000, "k/s", None, True)


def made_of_speed() -> dict[str, str]:
    """The engine, the vault, and the program."""
    config = preset("pe")
    return {
        **fingerprints.engine("pe", config),
        **fingerprints.simulator("vault", tile_design(tile_preset(_TILE))),
        "program of BP": fingerprints.programs(
            [bp_program(16, 16, scratchpad_bytes=config.scratchpad_bytes)]
        ),
        "simulator in Python": fingerprints.code(
            isa.iss.simulator, isa.iss.operations, isa.iss.vector_semantics
        ),
        **compiled_parts(),
        **model_parts(),
    }


def chip() -> Iterator[Measurement]:
    """The thesis's chip: its Verilog, its simulator, and an iteration of BP-M on all 128 engines,
    64 x 34 pixels; the same on smaller chips. Seconds are those of a processor."""
    for name, ((width, height, labels), iterations, preload) in _CHIPS.items():
        config = _chip(name)
        problem = motorcycle(width, height, labels).problem
        with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
            verilog.cache_clear()
            before = cpu_seconds()
            report = generate(config, f"{folder}/chip")
            yield Measurement(f"{name}_generate_cpu_seconds", cpu_seconds() - before, "s", None)
            yield Measurement(f"{name}_verilog", report.bytes, "bytes", 0.02)
            yield Measurement(f"{name}_verilog_mb", report.bytes / 1e6, "MB", 0.02)
            before = child_seconds()
            build_chip(config)
            yield Measurement(f"{name}_build_cpu_seconds", child_seconds() - before, "s", None)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            yield Measurement(f"{name}_build_mib", peak / 1024, "MiB", None)
            before = child_seconds()
            job = chip_bp_job(problem, iterations, config)
            outcome = run_on(job, config, counters=name != "thesis", preload=preload)
            seconds = child_seconds() - before
            if not outcome.match:
                raise CosimError(f"{name}: messages differ from the golden model's")
            result = outcome.result
            yield Measurement(f"{name}_bp_cycles", result.program_cycles, "cycles", 0.02)
            yield Measurement(f"{name}_remote_bytes", job.remote_bytes, "fraction", 0.02)
            if not preload:
                share = result.remote_share
                yield Measurement(f"{name}_remote_requests", share, "fraction", 0.02)
                other = run_on(job, config, outer=True)
                cycles = other.result.program_cycles
                yield Measurement(f"{name}_bp_cycles_cocotbext_axi", cycles, "cycles", 0.02)
            rate = result.simulated_cycles / seconds / 1000
            yield Measurement(f"{name}_kcycles_per_second", rate, "kcycles/s", None, True)


def made_of_chip() -> dict[str, str]:
    """The chips with the models around them, and the program of each."""
    found: dict[str, str] = {}
    for name, (size, iterations, _) in _CHIPS.items():
        config = _chip(name)
        found |= fingerprints.simulator(name, chip_design(config))
        job = chip_bp_job(motorcycle(*size).problem, iterations, config)
        found[f"program on {name}"] = fingerprints.programs([job.program])
    return found
