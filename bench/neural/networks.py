"""Whole networks on whole chips: the timing model's cycles, and the host's on the Verilog; and
convolutions of bytes."""

from collections.abc import Iterator
from dataclasses import replace

import microkernels.data.networks
import microkernels.networks.vgg16
import sim_tb.measure.byte_convolution
import sim_tb.measure.networks
import sim_tb.measure.reuse.column_reuse
import sim_tb.measure.sequences
from bench import fingerprints
from bench.functional import model_parts
from bench.measurement import Measurement
from microkernels.common.feature_map import COLUMN_BYTES
from pe.config import PeConfig
from sim_tb.dut.tile import tile_design
from sim_tb.measure.byte_convolution import PAIRS, SIDE, byte_machine, layer_jobs, measure_bytes
from sim_tb.measure.networks import NetworkRun, measure_host, measure_network, network_of
from sim_tb.measure.reuse.column_reuse import (
    LAYERS,
    layer_job,
    measure_layer,
    with_engines,
)
from sim_tb.measure.sequences import SEQUENCES, measure_sequence, sequence_job
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, preset, tile_preset
from synth.physical.area import synthesise
from synth.physical.targets import find_target

__all__ = [
    "byte_convolution",
    "column_reuse",
    "made_of_byte_convolution",
    "made_of_column_reuse",
    "made_of_networks",
    "made_of_sequences",
    "networks",
    "sequences",
]

_CHIP, _LITTLE_CHIP = "thesis", "tiny"
_NETWORK, _LITTLE = "vgg16", "little"
#: How windows of convolutions are loaded -> they share columns.
_WAYS = {"whole": False, "shared": True}
#: Columns and rows of vaults, images.
_RUNS = ((8, 4, 1), (4, 4, 1), (4, 2, 1), (2, 2, 1), (8, 4, 3))

#: Engines that share the layer: one with its own memory, and those of a vault.
_SHARERS = (1, 4)
_AREAS = {"generic": ("logic_ge", 1000.0, "kge"), "xc7": ("luts", 1.0, "luts")}


def _machine(columns: int, rows: int) -> ChipConfig:
    base = chip_preset(_CHIP)
    return replace(base, network=replace(base.network, columns=columns, rows=rows))


def networks() -> Iterator[Measurement]:
    """VGG-16, whole, on the 128 engines of the thesis's chip, and on chips of 16, 8 and 4 vaults;
    three images on the first. Every activation of every layer is compared with the golden model's.
    Times at 1.25 GHz on the timing model, with the loading and launching of all programs; of a
    layer, its moves beside its computation. Writing the image and reading the result through the
    host port of the Verilog. And a small CNN on the Verilog of four vaults beside the model."""
    for columns, rows, batch in _RUNS:
        run = measure_network(_NETWORK, _machine(columns, rows), batch=batch)
        prefix = f"{_NETWORK}_{columns}x{rows}_batch_{batch}"
        yield from _totals(prefix, run)
        if (columns, rows) != _RUNS[0][:2]:
            continue
        for layer, (work, moves) in run.layers.items():
            yield Measurement(f"{prefix}_{layer}_ms", work, "ms")
            yield Measurement(f"{prefix}_{layer}_moves_ms", moves, "ms")
    written, read = measure_host(_NETWORK, chip_preset(_CHIP))
    yield Measurement("image_cycles", written, "cycles")
    yield Measurement("result_cycles", read, "cycles")
    little = {
        on: measure_network(_LITTLE, chip_preset(_LITTLE_CHIP), on=on) for on in ("model", "rtl")
    }
    for on, run in little.items():
        total = sum(step.cycles + step.host_cycles for step in run.steps)
        yield Measurement(f"{_LITTLE}_{on}_cycles", total, "cycles")
    yield Measurement("activations_compared", little["rtl"].activations, "elements", None, True)


def _totals(prefix: str, run: NetworkRun) -> Iterator[Measurement]:
    yield Measurement(f"{prefix}_ms", run.ms, "ms")
    moves = sum(step.ms for step in run.steps if step.moves)
    yield Measurement(f"{prefix}_moves_ms", moves, "ms")
    host = sum(step.host_cycles * step.tck_ns for step in run.steps) / 1e6
    yield Measurement(f"{prefix}_host_ms", host, "ms")
    cycles = sum(step.cycles for step in run.steps)
    for share in ("vector_busy", "waits"):
        value = 100 * sum(getattr(step, share) * step.cycles for step in run.steps) / cycles
        yield Measurement(f"{prefix}_{share}", value, "%", tolerance=None)
    yield Measurement(f"{prefix}_activations", run.activations, "elements", None, True)


def made_of_networks() -> dict[str, str]:
    """The chips, the model of them, the programs, weights and images."""
    prints = {
        f"Verilog of {name}": fingerprints.hardware(chip_preset(name))
        for name in (_CHIP, _LITTLE_CHIP)
    }
    jobs = {f"{c} x {r} vaults, batch {b}": (_machine(c, r), b) for c, r, b in _RUNS}
    for name, (machine, batch) in jobs.items():
        launches = network_of(_NETWORK, machine, batch=batch).job.launches
        prints[f"programs for {name}"] = fingerprints.programs(
            launch.program for launch in launches
        )
    return {
        **prints,
        "what is measured": fingerprints.code(
            sim_tb.measure.networks, microkernels.data.networks, microkernels.networks.vgg16
        ),
        **model_parts(),
    }


def sequences() -> Iterator[Measurement]:
    """LSTM layers over sequences of time steps: ESE's on the 128 engines of the thesis's chip, all
    traffic between vaults and all barriers included, and a layer of 128 cells, one sequence at a
    time, on one engine, on the four engines of one vault and on four engines of four vaults. Every
    output of every step is compared with the golden model's. Times at 1.25 GHz on the timing model.
    And a small layer on the Verilog of four vaults beside the model."""
    base = chip_preset(_CHIP)
    for name in SEQUENCES:
        if name == _LITTLE:
            continue
        run = measure_sequence(name, base)
        yield Measurement(f"{name}_us", run.us, "us a step")
        yield Measurement(f"{name}_cycles", run.cycles, "cycles")
        yield Measurement(f"{name}_vector_busy", 100 * run.vector_busy, "%", None)
        yield Measurement(f"{name}_waits", 100 * run.waits, "%", None)
    for on in ("model", "rtl"):
        run = measure_sequence(_LITTLE, chip_preset(_LITTLE_CHIP), on=on)
        yield Measurement(f"{_LITTLE}_{on}_cycles", run.cycles, "cycles")


def made_of_sequences() -> dict[str, str]:
    """The machines, the model of them, the programs and the data."""
    prints = {}
    for name, sequence in SEQUENCES.items():
        machine = sequence.machine(chip_preset(_LITTLE_CHIP if name == _LITTLE else _CHIP))
        prints[f"Verilog of {name}"] = fingerprints.hardware(machine)
        launches = sequence_job(name, machine).launches
        prints[f"program of {name}"] = fingerprints.programs(launch.program for launch in launches)
    return {
        **prints,
        "what is measured": fingerprints.code(sim_tb.measure.sequences),
        **model_parts(),
    }


def column_reuse() -> Iterator[Measurement]:
    """What windows that share columns save, on the timing model: DRAM columns that a round of
    filters of VGG-16's convolutions reads, and its cycles, on a vault of four engines and of eight.
    Every output is compared with the golden model's. And what the convolutions of an image read on
    32 vaults, counted from these rounds."""
    for pes in (4, 8):
        config = with_engines(tile_preset("vault"), pes)
        for way, reuse in _WAYS.items():
            read = cycles = 0
            for name, alike in LAYERS.items():
                run = measure_layer(name, config, reuse=reuse)
                yield Measurement(f"{name}_{pes}_engines_{way}_cycles", run.cycles, "cycles")
                yield Measurement(f"{name}_{pes}_engines_{way}_columns", run.columns, "columns")
                read += run.columns * COLUMN_BYTES * run.rounds * alike
                cycles += run.cycles * run.rounds * alike
            yield Measurement(f"vgg16_{pes}_engines_{way}_gb_counted", 32 * read / 1e9, "GB")
            yield Measurement(f"vgg16_{pes}_engines_{way}_cycles_counted", cycles, "cycles")


def made_of_column_reuse() -> dict[str, str]:
    """The machines, the model of them, the programs and the data."""
    prints = {}
    for pes in (4, 8):
        config = with_engines(tile_preset("vault"), pes)
        prints[f"Verilog of {pes} engines"] = fingerprints.hardware(config)
        for way, reuse in _WAYS.items():
            jobs = [layer_job(name, pes, reuse=reuse) for name in LAYERS]
            programs = fingerprints.programs(job.program for job in jobs)
            prints[f"programs for {way} windows, {pes} engines"] = programs
    return {
        **prints,
        "what is measured": fingerprints.code(sim_tb.measure.reuse.column_reuse),
        **model_parts(),
    }


def _plain_and_pairs() -> dict[str, PeConfig]:
    """The preset without and with the instruction."""
    plain = preset("pe")
    return {"plain": plain, "pairs": replace(plain, instructions=plain.instructions | {PAIRS})}


def byte_convolution() -> Iterator[Measurement]:
    """A convolution of 3 x 3, 64 to 64 channels, 14 x 14 pixels, in 16 bits, from bytes to sums of
    16 bits, and from bytes to bytes: cycles in Verilog on one engine and on the four of a vault,
    every output compared with the golden model's, and their ratio to those in 16 bits. And the area
    of an engine without and with the instruction for it."""
    for sharers in _SHARERS:
        measured = measure_bytes(SIDE, sharers)
        for name, cycles in measured.items():
            yield Measurement(f"{sharers}_engines_{name}_cycles", cycles, "cycles")
            share = cycles / measured["elements"]
            yield Measurement(f"{sharers}_engines_{name}_ratio", share, "of the cycles in 16 bits")
    for name, config in _plain_and_pairs().items():
        for target, (measure, scale, unit) in _AREAS.items():
            value = synthesise(config, target).total.values[measure] / scale
            yield Measurement(f"{name}_{unit}", value, unit, 0.01)


def made_of_byte_convolution() -> dict[str, str]:
    """The machines, the programs and the data."""
    machine = byte_machine()
    prints = {
        **fingerprints.engine("an engine with pairs", machine.pe),
        **fingerprints.simulator("a vault with pairs", tile_design(machine)),
        "what is measured": fingerprints.code(sim_tb.measure.byte_convolution),
        "programs": fingerprints.programs(
            job.program for sharers in _SHARERS for job in layer_jobs(SIDE, sharers).values()
        ),
    }
    for name, config in _plain_and_pairs().items():
        prints |= fingerprints.mapped(f"the {name} engine", config)
    for target in _AREAS:
        prints[f"mapping for {target}"] = fingerprints.mapping(find_target(target))
    return prints
