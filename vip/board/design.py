"""The chip of a board, an engine trimmed to its work with memory on the chip and a serial line, and
its bit file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hdl.config import SramKind
from hdl.yosys import need_yosys
from memory.axi.layout import AxiConfig
from memory.on_chip import BANK_BYTES, OnChipConfig
from microkernels.common.feature_map import round_up
from microkernels.suite import Application
from noc.config import NetworkConfig
from pe.config import PeConfig
from soc.board.boards import BoardError, FpgaBoard, find_board, with_block_rams, with_sdram
from soc.board.design import board_verilog
from soc.board.sdram import SDRAM_ADDRESS_BITS, SDRAM_PHASES, need_litedram
from soc.board.terminal import line_rate
from soc.chip.config import ChipConfig
from soc.generate.presets import preset
from soc.host.transport import HostError
from soc.tile.config import VaultTileConfig
from support.errors import Shown
from support.extras import together
from support.processes import workers
from synth.analysis.bounds import Sizes
from synth.analysis.trim import report
from synth.errors import SynthesisError
from synth.physical.bitstream import bit_file, map_board
from vip.progress import Progress, silent
from vip.trimming.runs import launches_alone

#: Memory of a board answers in a few cycles, that on the chip sooner, so more requests and ranges
#: in transfer gain nothing.
_MOST_REQUESTS, _MOST_RANGES, _MOST_RANGES_ON_CHIP = 16, 12, 6
#: Rate of the design's clock in MHz, if the user does not choose one.
CLOCK_MHZ = 50.0
_SRAM: SramKind = "fpga"


@dataclass(frozen=True, kw_only=True)
class BoardDesign:
    """What a bit file is made for.

    Attributes:
        board: it. application: that it runs. chip: its configuration.
        mhz: of the chip's clock. rate: of the serial line in bits per second. divisor: cycles of a
            bit.
        sdram: clocks of the SDRAM in one of the chip; 0: the memory is on the chip.
    """

    board: FpgaBoard
    application: Application
    chip: ChipConfig
    mhz: float
    rate: int
    divisor: int
    sdram: int = 0

    @property
    def what(self) -> str:
        """Names the design."""
        return f"{self.application.name} on {self.board.name}"

    def to_json(self) -> dict[str, object]:
        """The design as plain JSON data."""
        vault = self.chip.tile.vault
        return {
            "board": self.board.name,
            "application": self.application.name,
            "device": f"{self.board.device}-{self.board.grade}",
            "memory_bytes": vault.size_bytes,
            "sdram_clock_mhz": self.sdram * self.mhz or None,
            "clock_mhz": self.mhz,
            "bits_per_second": self.rate,
            "digest": f"{self.chip.digest:016x}",
        }


def board_design(
    board: str,
    work: Application,
    *,
    memory_kib: int | None = None,
    sdram: int = 0,
    whole: bool = False,
    mhz: float = CLOCK_MHZ,
    progress: Progress = silent,
) -> BoardDesign:
    """The design of a board for work, with as many engines as its jobs use.

    Parameters:
        board: see :func:`soc.board.boards.find_board`.
        work: see :func:`vip.trimming.models.find_work`.
        memory_kib: KiB of memory: on the chip a multiple of 16, of the SDRAM a power of two; None:
            as many as the data need.
        sdram: clocks of the board's SDRAM in one of the chip, of
            :data:`soc.board.sdram.SDRAM_PHASES`; 0: the memory is on the chip.
        whole: keep the whole engine of the work's preset instead of trimming it, with sizes that
            are proved for every input.
        mhz: of the chip's clock.
        progress: called with each stage.

    Raises:
        BoardError: an unknown board, or memory that the work or the board does not allow.
        VipError: a clock without a rate for the serial line, or work without proved sizes.
    """
    chosen = find_board(board)
    rate, divisor = line_rate(mhz)
    size = _memory_size(chosen, work, memory_kib, sdram)
    engine = preset(work.preset)
    engines = max(job.pes for job in work.jobs)
    if not whole:
        progress(f"trimming the engine to {work.name}")
        launches = launches_alone(work.jobs, engine, engines)
        sizes = Sizes(basis="proved", address_bits=(size - 1).bit_length())
        engine = report(launches, engine, sizes=sizes).trimmed
    return BoardDesign(
        board=chosen,
        application=work,
        chip=board_chip(engine, size, engines=engines, outside=bool(sdram)),
        mhz=mhz,
        rate=rate,
        divisor=divisor,
        sdram=sdram,
    )


def _memory_size(board: FpgaBoard, work: Application, kib: int | None, sdram: int) -> int:
    """Bytes of memory; errors as of :func:`board_design`."""
    if sdram and not board.sdram:
        raise BoardError(f"{board.name} has no SDRAM; there are: {with_sdram()}")
    if sdram not in (0, *SDRAM_PHASES):
        ratios = " or ".join(map(str, SDRAM_PHASES))
        raise BoardError(f"the SDRAM's clock must be {ratios} times the chip's, not {sdram}")
    needed = max(job.end for job in work.jobs)
    # A block RAM is 2 KiB.
    most = board.block_rams * 2048 // BANK_BYTES * BANK_BYTES
    least, where, step = round_up(needed, BANK_BYTES), "all block RAM of the device", "multiple"
    if sdram:
        least, where, step = 1 << (least - 1).bit_length(), "the SDRAM", "power of two"
        most = 1 << SDRAM_ADDRESS_BITS
    if least > most:
        advice = "" if sdram else with_block_rams(least // 2048)
        if not sdram and board.sdram:
            advice = "; --sdram 1 would do"
        raise BoardError(
            f"{work.name} on {board.name}: its data need {needed:,} bytes, and {where} has "
            f"{most:,}: {needed - most:,} too many{advice}"
        )
    size = least if kib is None else kib << 10
    if not least <= size <= most or size % BANK_BYTES or (sdram and size.bit_count() > 1):
        of = f"{step} of 16 KiB" if not sdram else step
        raise BoardError(
            f"{work.name} on {board.name}: memory must be a {of} from {least >> 10}, which its "
            f"data need, to {most >> 10}, {where}, not {size >> 10} KiB"
        )
    return size


def board_chip(
    engine: PeConfig, size: int, *, engines: int = 1, outside: bool = False
) -> ChipConfig:
    """A chip of engines with ``size`` bytes of memory, behind a serial line; ``outside``: the
    memory is on a bus."""
    bits = (size - 1).bit_length()
    pe = replace(
        engine,
        sram=_SRAM,
        address_bits=bits,
        load_store_queue=min(engine.load_store_queue, _MOST_REQUESTS),
        arc_entries=min(engine.arc_entries, _MOST_RANGES if outside else _MOST_RANGES_ON_CHIP),
    )
    # Further bits number the requester: an engine or the host.
    tags = pe.tag_bits + engines.bit_length()
    vault: AxiConfig | OnChipConfig
    if outside:
        vault = AxiConfig(
            address_bits=bits,
            tag_bits=tags,
            data_bits=64,
            outstanding=16,
            counters=False,
            sram=_SRAM,
        )
    else:
        vault = OnChipConfig(bytes=size, tag_bits=tags, sram=_SRAM)
    network = NetworkConfig(columns=1, rows=1, address_bits=bits, tag_bits=pe.tag_bits, sram=_SRAM)
    tile = VaultTileConfig(pe=pe, vault=vault, pes=engines, extra_ports=1)
    return ChipConfig(tile=tile, network=network, remote=False, host_data="serial")


@dataclass(frozen=True, kw_only=True)
class BoardBuild(Shown):
    """A bit file.

    Attributes:
        design: that it holds.
        content: its bytes.
        used: measure of the family's target -> number after mapping.
        seeds: seed of the placer -> highest clock in MHz. seed: of the bit file, the fastest.
    """

    design: BoardDesign
    content: bytes
    used: Mapping[str, float]
    seeds: Mapping[int, float]
    seed: int

    @property
    def margin(self) -> float:
        """How much faster the design is than its clock, as a fraction of that."""
        return self.seeds[self.seed] / self.design.mhz - 1

    def to_json(self) -> dict[str, object]:
        """The bit file as plain JSON data."""
        return {
            **self.design.to_json(),
            "bytes": len(self.content),
            "used": dict(self.used),
            "seeds": {str(seed): round(mhz, 2) for seed, mhz in self.seeds.items()},
            "seed": self.seed,
            "margin": round(self.margin, 4),
        }


def map_design(
    design: BoardDesign, progress: Progress = silent
) -> tuple[Path, Mapping[str, float]]:
    """A board's design as cells; result and errors as of
    :func:`synth.physical.bitstream.map_board`."""
    progress("writing Verilog")
    verilog = board_verilog(design.chip, divisor=design.divisor, mhz=design.mhz, sdram=design.sdram)
    progress(f"synthesis of {design.what}")
    return map_board(verilog, design.board, design.mhz, design.sdram)


def build_board(design: BoardDesign, *, seeds: int = 1, progress: Progress = silent) -> BoardBuild:
    """Map a board's design, place and route it at the board's pins, and pack the bit file. Each
    step is cached by the content of its inputs; equal designs give equal bytes.

    Parameters:
        seeds: placements, with seeds from 1 on, one per processor at a time; the fastest is packed.
        progress: called with each stage.

    Raises:
        SynthesisError: the design does not fit, a tool fails, or the clock is too fast for every
            placement; the message names one that would do.
        MissingExtraError: a tool is not installed.
    """
    with together():
        need_yosys()
        design.board.family.need()
        if design.sdram:
            need_litedram()
    if seeds < 1:
        raise SynthesisError(f"at least 1 seed is needed, not {seeds}")
    netlist, used = map_design(design, progress)
    stage = f"placing {design.what}"
    progress(stage, 0, seeds)
    numbers = range(1, seeds + 1)
    with workers() as pool:
        place = partial(bit_file, netlist, design.board, design.mhz, design.sdram)
        files = dict(zip(numbers, pool.map(place, numbers), strict=True))
    rates = {seed: mhz for seed, (_, mhz) in files.items()}
    best = max(rates, key=lambda seed: rates[seed])
    if rates[best] < design.mhz:
        raise SynthesisError(
            f"{design.what} reaches {rates[best]:.1f} MHz, and its clock is {design.mhz:g}: "
            f"{_slower(rates[best])}"
        )
    return BoardBuild(design=design, content=files[best][0], used=used, seeds=rates, seed=best)


def _slower(mhz: float) -> str:
    """Advice: a clock of at most ``mhz`` that makes a rate of the serial line."""
    for whole in range(int(mhz), 7, -1):
        try:
            line_rate(whole)
        except HostError:
            continue
        return f"--clock {whole} would do"
    return "no clock would do"
