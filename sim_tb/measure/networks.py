"""Whole networks on every engine of a chip: the timing model's cycles, layer by layer.

Every activation of every layer is compared with the golden model's. Weights and tables of the
layers lie in the DRAM from the start, as in any machine that is used more than once; the image is
put there without the chip. Loading the programs and launching them through the host port is in the
figures. :func:`measure_host` measures how long the host takes to write the image and to read the
result through the data port, on the Verilog.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from isa.image import DramImage
from isa.run import RunResult
from microkernels.data.networks import photographs, usual_network_weights
from microkernels.networks.jobs import NetworkJob, network_job
from microkernels.networks.layout import NetworkLayout
from microkernels.networks.network import Conv, Dense, MapSize, Network, Pool
from microkernels.networks.plan import plan_network
from microkernels.networks.vgg16 import vgg16
from sim_tb.cosim.checkpoint import Checkpoint
from sim_tb.cosim.chip_session import ChipSimulation
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import chip_engines, launches_key, run_on
from sim_tb.cosim.machine import Timed
from sim_tb.dut.chip import chip_design
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json
from soc.host.driver import Host
from soc.host.transport import Blocking, run
from support.cache import build_folder

from .full_hd import MEMORY_WAITS

__all__ = [
    "NETWORKS",
    "NetworkRun",
    "StepRun",
    "measure_host",
    "measure_network",
    "network_of",
]

#: A network for small chips and for tests.
_LITTLE = Network(
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
NETWORKS: Mapping[str, Network] = {"vgg16": vgg16(), "little": _LITTLE}


@dataclass(frozen=True, kw_only=True)
class StepRun:
    """A launch of a network.

    Attributes:
        name: of the launch. layer: that it belongs to. moves: it moves the layer's input.
        cycles: of the engine that ran longest. tck_ns: clock period.
        host_cycles: besides, of loading the program and launching it, until the host has found that
            it has ended.
        vector_busy, waits: shares of all engines' cycles in which the vector unit works, and in
            which an instruction waits for memory or for another engine.
        gbs: bandwidth of all DRAM, in GB/s. remote: share of the requests to other vaults.
    """

    name: str
    layer: str
    moves: bool
    cycles: int
    tck_ns: float
    host_cycles: int
    vector_busy: float
    waits: float
    gbs: float
    remote: float

    @property
    def ms(self) -> float:
        """Time of the launch, with the host's work."""
        return (self.cycles + self.host_cycles) * self.tck_ns / 1e6


@dataclass(frozen=True, kw_only=True)
class NetworkRun:
    """A network that has run.

    Attributes:
        name: of the network. batch: images. vaults: of the chip.
        steps: one after the other.
        activations: elements compared with the golden model's; all are equal.
        operations: multiplications, additions and comparisons that the network asks for.
    """

    name: str
    batch: int
    vaults: int
    steps: tuple[StepRun, ...]
    activations: int
    operations: int

    @property
    def ms(self) -> float:
        """Time of the batch."""
        return sum(step.ms for step in self.steps)

    @property
    def layers(self) -> Mapping[str, tuple[float, float]]:
        """Layer -> milliseconds of its computation, and of the moves before it."""
        found: dict[str, tuple[float, float]] = {}
        for step in self.steps:
            work, moves = found.get(step.layer, (0.0, 0.0))
            found[step.layer] = (
                work + step.ms * (not step.moves),
                moves + step.ms * step.moves,
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "NetworkRun":
        """The reverse of :meth:`to_dict`."""
        steps = tuple(StepRun(**step) for step in content["steps"])
        return cls(**{**content, "steps": steps})


def network_of(name: str, config: ChipConfig, *, batch: int = 1) -> NetworkJob:
    """The job of one of :data:`NETWORKS` on all engines of a chip, with seeded weights and
    photographs.

    Parameters:
        name: of the network. config: of the chip. batch: images, at least 1.

    Raises:
        KernelError: the network does not fit the chip.
    """
    network, engines = NETWORKS[name], chip_engines(config)
    # Before the weights are drawn, which takes much time and memory.
    NetworkLayout(plan_network(network, batch=batch, engines=engines))
    return network_job(
        network,
        usual_network_weights(network),
        photographs(network.input, batch),
        engines=engines,
    )


def measure_network(
    name: str,
    config: ChipConfig,
    *,
    batch: int = 1,
    on: Timed = "model",
    progress: Callable[[str, int, int], None] | None = None,
) -> NetworkRun:
    """Run one of :data:`NETWORKS` and compare every activation.

    On the timing model a result is cached on disk, and an interrupted run goes on after the launch
    of its last checkpoint, at most 20 seconds and a launch before.

    Parameters:
        name, config, batch: as of :func:`network_of`.
        on: the Verilog, or the timing model.
        progress: called with the name of each launch, the number of those before it, and of all.

    Raises:
        CosimError: an engine faulted, or an activation differs from the golden model's.
        KernelError: the network does not fit the chip.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    job = network_of(name, config, batch=batch)
    if on == "rtl":
        return _measured(name, job, config, on, None, progress)
    texts = [path.read_bytes() for path in sources()]
    machine = repr(sorted(configuration_json(config).items()))
    key = fingerprint(name, str(batch), machine, launches_key(job.job), *texts)
    file = f"{name}_{config.vaults}_vaults_batch_{batch}"
    checkpoint = Checkpoint(build_folder() / "checkpoints" / file, key)
    found = Kept("networks").get(
        key, lambda: _measured(name, job, config, on, checkpoint, progress).to_dict()
    )
    checkpoint.remove()
    return NetworkRun.from_dict(found)


def _measured(
    name: str,
    job: NetworkJob,
    config: ChipConfig,
    on: Timed,
    checkpoint: Checkpoint | None,
    progress: Callable[[str, int, int], None] | None,
) -> NetworkRun:
    launches = [launch.name for launch in job.job.launches]

    def begins(launch: str) -> None:
        if progress is not None:
            progress(launch, launches.index(launch), len(launches))

    outcome = run_on(
        job.job, config, on=on, preload=on == "model", checkpoint=checkpoint, begins=begins
    )
    if not outcome.match:
        expected = job.of_layers(job.job.expected)
        found = job.of_layers(outcome.outputs)
        wrong = next(layer for layer in found if (found[layer] != expected[layer]).any())
        raise CosimError(f"{name}: activations differ, first in layer {wrong}")
    return NetworkRun(
        name=name,
        batch=job.plan.batch,
        vaults=config.vaults,
        steps=tuple(_step(job, launch, run) for launch, run in outcome.results.items()),
        activations=outcome.outputs.size,
        operations=job.job.operations,
    )


def _step(job: NetworkJob, launch: str, result: RunResult) -> StepRun:
    layer, moves = job.step_of(launch)
    cycles = sum(pe["CYCLES"] for pe in result.counters)

    def share(*counters: str) -> float:
        return sum(pe[name] for pe in result.counters for name in counters) / cycles

    return StepRun(
        name=launch,
        layer=layer,
        moves=moves,
        cycles=result.program_cycles,
        tck_ns=result.tck_ns,
        host_cycles=result.loading + result.host_cycles - result.program_cycles,
        vector_busy=share("VECTOR_BUSY"),
        waits=share(*MEMORY_WAITS),
        gbs=result.gbs,
        remote=result.remote_share,
    )


class _Segments:
    """A memory that remembers what is written, and reads zeros."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = []
        self.read_at: list[tuple[int, int]] = []

    def write(self, address: int, data: bytes) -> None:
        self.written.append((address, data))

    def read(self, address: int, n: int) -> bytes:
        self.read_at.append((address, n))
        return bytes(n)


def measure_host(name: str, config: ChipConfig) -> tuple[int, int]:
    """Cycles in which the host writes the image of one of :data:`NETWORKS` into the DRAM of the
    Verilog of an idle chip, and reads the last layer's output. The result is cached on disk.

    Parameters:
        name, config: as of :func:`network_of`.

    Raises:
        CosimError: what is in the DRAM then is not the image.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    network = NETWORKS[name]
    layout = network_of(name, config).layout
    memory = _Segments()
    layout.store_images(memory, photographs(network.input))
    layout.outputs[network.layers[-1].name].load(memory)
    texts = [value.encode() for value in chip_design(config).verilog.values()]
    held = [part for address, data in memory.written for part in (str(address), data)]
    key = fingerprint("host", repr(memory.read_at), *held, *texts)
    found = Kept("networks").get(key, lambda: _host_cycles(config, memory))
    return found[0], found[1]


def _host_cycles(config: ChipConfig, memory: _Segments) -> tuple[int, int]:
    with DramImage(config.memory_bytes) as image, ChipSimulation(config, image) as chip:
        host = Host(Blocking(chip))
        run(host.identify())
        start = chip.cycles
        for address, data in memory.written:
            run(host.write(address, data))
        written = chip.cycles
        for address, n in memory.read_at:
            run(host.read(address, n))
        done = chip.cycles
        chip.settle()
        if any(image.read(address, len(data)) != data for address, data in memory.written):
            raise CosimError("the DRAM does not hold what the host has written")
    return written - start, done - written
