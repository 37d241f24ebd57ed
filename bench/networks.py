"""Whole networks on every engine of a chip: the timing model's cycles, layer by layer."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from isa.image import DramImage
from microkernels.data.networks import in_usual_bytes, photographs, usual_network_weights
from microkernels.networks.jobs import NetworkJob, NetworkLayout, network_job
from microkernels.networks.network import Conv, Dense, MapSize, Network, Pool
from microkernels.networks.plan import plan_network
from microkernels.networks.vgg16 import vgg16, vgg19
from microkernels.runtime.ring import ChipEngines
from pe.config import PAIRS
from sim_tb.cosim.checkpoint import Checkpoint
from sim_tb.cosim.chip import ChipSimulation, HostMemory, run_launch
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Timed
from sim_tb.timed.chip.chip_model import ChipModel
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset
from soc.host.driver import Host
from soc.host.transport import Blocking, run
from support.cache import build_folder
from support.errors import unknown
from support.picture import COLOURS, picture
from vip.cli.commands.option_groups.machine import TimedOption
from vip.cli.commands.options import PresetOption
from vip.cli.console import warn
from vip.energy import costs_of

from .harness.experiment import SIMULATION, BenchError, Measurement, PictureOption, experiment, say
from .harness.runs import MEMORY_WAITS, LaunchRun, cached, model_key, runs_of, stored_runs

#: A network for small chips and for tests.
_LITTLE_NETWORK = Network(
    input=MapSize(32, 32, 3),
    layers=(
        Conv(name="conv1", filters=16, padding=1, fraction=12),
        Conv(name="conv2", filters=32, padding=1, fraction=12),
        Pool(name="pool1"),
        Conv(name="conv3", filters=32, kernel=5, padding=2, fraction=12),
        Pool(name="pool2"),
        Dense(name="fc1", outputs=64, fraction=12),
        Dense(name="fc2", outputs=10, fraction=12, relu=False),
    ),
)

#: Name -> network.
NETWORKS: Mapping[str, Network] = {
    "vgg16": vgg16(),
    "vgg19": vgg19(),
    "little": _LITTLE_NETWORK,
}


@dataclass(frozen=True, kw_only=True)
class BatchRun:
    """A network that has run, with all activations equal to the golden model's.

    Attributes:
        job: of the network. runs: of its launches, by name.
    """

    job: NetworkJob
    runs: Mapping[str, LaunchRun]

    @property
    def ms(self) -> float:
        """Time of the batch."""
        return sum(run.ms_with_host for run in self.runs.values())

    @property
    def gbs(self) -> float:
        """Mean bandwidth of all DRAM."""
        return sum(run.gbs * run.ms_with_host for run in self.runs.values()) / self.ms

    @property
    def moves(self) -> list[LaunchRun]:
        """Launches that move a layer's input."""
        return [run for name, run in self.runs.items() if self.job.step_of(name)[1]]

    @property
    def layers(self) -> Mapping[str, tuple[float, float]]:
        """Layer -> milliseconds of its computation, and of the moves before it."""
        times: dict[str, list[float]] = {}
        for name, launch in self.runs.items():
            layer, moves = self.job.step_of(name)
            times.setdefault(layer, [0.0, 0.0])[moves] += launch.ms_with_host
        return {layer: (computing, moves) for layer, (computing, moves) in times.items()}


def network_of(name: str, config: ChipConfig, *, batch: int = 1) -> NetworkJob:
    """The job of one of :data:`NETWORKS` on all engines of a chip, with seeded weights and
    photographs: in bytes on engines that multiply them, otherwise in 16 bits.

    Parameters:
        name: of the network. config: of the chip. batch: images, at least 1.

    Raises:
        KernelError: the network does not fit the chip.
    """
    network, engines = NETWORKS[name], ChipEngines.of(config)
    # Checked before drawing the weights, which takes much time and memory.
    NetworkLayout(plan_network(network, batch=batch, engines=engines))
    if PAIRS in config.pe.instructions:
        network, weights = in_usual_bytes(network)
    else:
        weights = usual_network_weights(network)
    images = photographs(network.input, batch, network.input_bits)
    return network_job(network, weights, images, engines=engines)


def measure_network(
    name: str,
    config: ChipConfig,
    *,
    batch: int = 1,
    on: Timed = "model",
) -> BatchRun:
    """Run one of :data:`NETWORKS` and compare every activation.

    A result is cached on disk. On the timing model an interrupted run goes on after the launch of
    its last checkpoint, at most 20 seconds and a launch before.

    Parameters:
        name, config, batch: as for :func:`network_of`.
        on: the Verilog, or the timing model.

    Raises:
        CosimError: an engine faulted, or an activation differs from the golden model's.
        KernelError: the network does not fit the chip.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    job = network_of(name, config, batch=batch)
    launches = [launch.name for launch in job.launches]
    file = f"{name}_{config.vaults}_vaults_batch_{batch}_{job.plan.network.input_bits}_bits"

    def begins(launch: str) -> None:
        say(f"{launch}, {launches.index(launch)} of {len(launches)}")

    def measure() -> dict[str, Any]:
        checkpoint = None
        if on == "model":
            checkpoint = Checkpoint(build_folder() / "checkpoints" / file, model_key(config, job))
        outcome = run_on(job, config, on=on, preload=True, checkpoint=checkpoint, begins=begins)
        if not outcome.match:
            expected = job.of_layers(job.expected)
            outputs = job.of_layers(outcome.outputs)
            wrong = next(layer for layer in outputs if (outputs[layer] != expected[layer]).any())
            raise CosimError(f"{name}: activations differ, first in layer {wrong}")
        if checkpoint is not None:
            checkpoint.remove()
        return stored_runs(config, outcome)

    return BatchRun(job=job, runs=runs_of(cached("networks", config, job, measure, on=on)))


def measure_by_vault(name: str, config: ChipConfig, batch: int = 1) -> tuple[float, float]:
    """GB/s of all DRAM and milliseconds of one of :data:`NETWORKS` on the timing model, from
    launches in which the engines of one vault compute, and all engines if data move.

    Vaults compute without each other, and all have as much work: apart from where in a refresh
    interval they start, each is like the others: times are up to 0.7 % less than those of all. What
    they compute is not compared. The result is cached on disk.

    Parameters:
        name, config, batch: as for :func:`network_of`.

    Raises:
        VipError: as of :func:`measure_network`.
    """
    job = network_of(name, config, batch=batch)

    def measured() -> list[float]:
        ms = moved = 0.0
        with DramImage(config.memory_bytes) as image, ChipModel(config, image) as chip:
            job.prepare(image)
            for launch in job.launches:
                _, moves = job.step_of(launch.name)
                say(launch.name)
                chip.reset()
                vaults = config.vaults if moves else 1
                result = run_launch(chip, launch, pes=range(vaults * config.tile.pes))
                ms += result.tck_ns * (result.loading + result.host_cycles) / 1e6
                moved += result.bytes_moved * config.vaults / vaults
        return [moved / ms / 1e6, ms]

    gbs, ms = cached("networks_by_vault", config, job, measured, on="model")
    return gbs, ms


def measure_host(name: str, config: ChipConfig) -> tuple[int, int]:
    """Cycles in which the host writes the image of one of :data:`NETWORKS` into the DRAM of the
    Verilog of an idle chip, and reads the last layer's output. The result is cached on disk.

    Parameters:
        name, config: as for :func:`network_of`.

    Raises:
        CosimError: the DRAM does not contain the image afterwards.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    network, job = NETWORKS[name], network_of(name, config)
    images = photographs(network.input)

    def measured() -> tuple[int, int]:
        size = config.memory_bytes
        with (
            DramImage(size) as image,
            DramImage(size) as expected,
            ChipSimulation(config, image) as chip,
        ):
            host = Host(Blocking(chip))
            run(host.identify())
            start = chip.cycles
            job.layout.store_images(HostMemory(host), images)
            written = chip.cycles
            job.layout.outputs[network.layers[-1].name].load(HostMemory(host))
            done = chip.cycles
            chip.settle()
            job.layout.store_images(expected, images)
            if next(image.differences(expected), None) is not None:
                raise CosimError("the DRAM does not hold what the host has written")
        return written - start, done - written

    to_chip, from_chip = cached("networks_host", config, job, measured, on="rtl")
    return to_chip, from_chip


_WIDTH = 9.0

#: Inches of a layer's bar, and of all that is above and below the bars.
_BAR, _AROUND = 0.24, 1.1


def draw_network(name: str, run: BatchRun, path: Path) -> None:
    """Write a picture of the milliseconds of each layer's computation and of the moves before it.

    Parameters:
        name, run: of a network.
        path: PNG or SVG; replaced only when the picture is complete.

    Raises:
        support.picture.PictureError: the file's name has another ending.
        OSError: the file can't be written.
    """
    layers = list(run.layers)
    columns = (
        ("computation", [work for work, _ in run.layers.values()], COLOURS[0]),
        ("moves before it", [moves for _, moves in run.layers.values()], COLOURS[1]),
    )
    with picture(_WIDTH, _AROUND + _BAR * len(layers), path) as figure:
        axes = figure.subplots(1, len(columns), sharey=True)
        for axis, (title, values, colour) in zip(axes.flat, columns, strict=True):
            bars = axis.barh(layers, values, color=colour)
            axis.bar_label(bars, [f"{value:.3f}" if value else "" for value in values], padding=2)
            axis.set_xlim(right=1.15 * max(*values, 1e-3))
            axis.set_title(f"{title}: {sum(values):.2f} ms", fontsize=10)
            axis.set_xlabel("ms at the chip's clock, with the host's launches")
            axis.grid(axis="x", alpha=0.3)
        axes[0].invert_yaxis()
        plan = run.job.plan
        figure.suptitle(f"{name}, batch {plan.batch}, {run.job.vaults} vaults: {run.ms:.2f} ms")


_CHIP, _LITTLE_CHIP = "thesis", "tiny"
#: Prefix of figures -> chip whose engines multiply bytes, and lines of its buffers.
_BYTE_CHIPS = {
    "int8": ("thesis-int8", 0),
    "int8_lines": ("thesis-int8-lines", 32),
    "int8_64_lines": ("thesis-int8-lines", 64),
}

_NETWORK, _LITTLE = "vgg16", "little"

#: Columns and rows of vaults, images.
_RUNS = ((8, 4, 1), (4, 4, 1), (4, 2, 1), (2, 2, 1), (8, 4, 3))


def _machine(columns: int, rows: int) -> ChipConfig:
    base = chip_preset(_CHIP)
    return replace(base, network=replace(base.network, columns=columns, rows=rows))


@experiment(
    presets=("thesis", "thesis-int8", "thesis-int8-lines", "tiny"), tools=SIMULATION, minutes=170
)
def networks(
    only: Annotated[
        str | None,
        typer.Option(help=f"This network alone: {' or '.join(NETWORKS)}.", metavar="NAME"),
    ] = None,
    preset_name: PresetOption = _CHIP,
    batch: Annotated[int, typer.Option(help="Images, with --only.", min=1, max=64)] = 1,
    on: TimedOption = "model",
    picture: PictureOption = None,
) -> Iterator[Measurement]:
    """Whole networks on all engines of a chip, layer by layer; every activation is checked.

    VGG-16 on the 128 engines of the thesis's chip, and on chips of 16, 8 and 4 vaults; three images
    on the first; and in bytes, without line buffers and with 32 and 64 lines. Times at 1.25 GHz
    on the timing model, with the loading and launching of all programs; of a layer, its moves
    beside its computation; on 128 engines, MiB of DRAM and energy (:mod:`vip.energy`). Writing the
    image and reading the result through the host port of the Verilog. And a small CNN on the
    Verilog of four vaults beside the model. Or one network on one chip, which the picture shows. An
    interrupted run goes on.

    Example: vip bench networks --only little --preset tiny --json little.json
    """
    if only is None and (preset_name, batch, on, picture) != (_CHIP, 1, "model", None):
        raise BenchError("--preset, --batch, --on and --picture go with --only")
    if only is not None:
        if only not in NETWORKS:
            raise BenchError(f"--only: {unknown('network', only, NETWORKS)}")
        config = chip_preset(preset_name)
        run = measure_network(only, config, batch=batch, on=on)
        if picture is not None:
            draw_network(only, run, picture)
        yield from _figures(only, config, run)
        return
    for columns, rows, batch in _RUNS:
        config = _machine(columns, rows)
        run = measure_network(_NETWORK, config, batch=batch)
        by_layer = (columns, rows) == _RUNS[0][:2]
        prefix = f"{_NETWORK}_{columns}x{rows}_batch_{batch}"
        yield from _figures(prefix, config, run, by_layer=by_layer)
    for suffix, (preset_name, lines) in _BYTE_CHIPS.items():
        config = chip_preset(preset_name)
        config = replace(config, tile=replace(config.tile, line_buffer=lines))
        run = measure_network(_NETWORK, config)
        yield from _figures(f"{_NETWORK}_{suffix}", config, run)
    written, read = measure_host(_NETWORK, chip_preset(_CHIP))
    yield Measurement("image_cycles", written, "cycles")
    yield Measurement("result_cycles", read, "cycles")
    for machine in get_args(Timed):
        run = measure_network(_LITTLE, chip_preset(_LITTLE_CHIP), on=machine)
        total = sum(launch.cycles + launch.host_cycles for launch in run.runs.values())
        yield Measurement(f"{_LITTLE}_{machine}_cycles", total, "cycles")
    yield Measurement("activations_compared", run.job.expected.size, "elements", None, True)


def _figures(
    prefix: str, config: ChipConfig, run: BatchRun, *, by_layer: bool = True
) -> Iterator[Measurement]:
    """Figures of all layers together, and ``by_layer``, with their energy."""
    yield from _totals(prefix, run)
    if not by_layer:
        return
    for layer, (computing, moves) in run.layers.items():
        yield Measurement(f"{prefix}_{layer}_ms", computing, "ms")
        yield Measurement(f"{prefix}_{layer}_moves_ms", moves, "ms")
    yield from _energy(prefix, config, run)


def _energy(prefix: str, config: ChipConfig, run: BatchRun) -> Iterator[Measurement]:
    """MiB of DRAM of each layer with the moves before it, and of all; millijoules of all by part,
    if power is recorded for the engines."""
    layers: dict[str, Counter[str]] = {}
    for name, launch in run.runs.items():
        layers.setdefault(run.job.step_of(name)[0], Counter()).update(launch.work)
    total = sum(layers.values(), Counter())
    for name, done in [*((f"{layer}_", done) for layer, done in layers.items()), ("", total)]:
        for kind in ("read", "written"):
            mib = done[f"{kind}_bytes"] / 2**20
            yield Measurement(f"{prefix}_{name}{kind}_mib", mib, "MiB")
    costs, why = costs_of(config, {prefix: total})
    if why:
        warn(why)
    for part, uj in costs[prefix].items():
        if part.endswith("_uj"):
            yield Measurement(f"{prefix}_{part.removesuffix('_uj')}_mj", uj / 1000, "mJ", 0.02)


def _totals(prefix: str, run: BatchRun) -> Iterator[Measurement]:
    yield Measurement(f"{prefix}_ms", run.ms, "ms")
    moves = sum(launch.ms_with_host for launch in run.moves)
    yield Measurement(f"{prefix}_moves_ms", moves, "ms")
    launches = list(run.runs.values())
    host = sum(launch.host_cycles * launch.tck_ns for launch in launches) / 1e6
    yield Measurement(f"{prefix}_host_ms", host, "ms")
    cycles = sum(launch.cycles for launch in launches)
    for name, counters in (("vector_busy", ("VECTOR_BUSY",)), ("waits", MEMORY_WAITS)):
        value = 100 * sum(launch.share(*counters) * launch.cycles for launch in launches) / cycles
        yield Measurement(f"{prefix}_{name}", value, "%", tolerance=None)
    yield Measurement(f"{prefix}_activations", run.job.expected.size, "elements", None, True)
