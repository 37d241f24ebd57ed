"""``vip board``: bit files of boards, their simulation, tests and runs."""

from pathlib import Path
from typing import Annotated

import typer

from noc.crossbar import MAX_REQUESTERS
from soc.board.boards import BOARDS, BoardError
from soc.board.families import FAMILIES
from support.command import USER_ERROR
from support.files import write_atomically
from vip.board.design import CLOCK_MHZ, BoardDesign, board_design, build_board
from vip.board.run import BoardRun, load_board, run_board, simulate_board
from vip.cli.console import console, shown, table
from vip.cli.groups import Answer
from vip.cli.lazy import CommandGroup
from vip.trimming.models import find_work, is_model, is_onnx, work_files

from .option_groups.models import ModelOption, refuse
from .options import PlacementsOption, output_option, reading, writing

app = typer.Typer(
    cls=CommandGroup,
    help="Build, simulate and run an engine on an FPGA board.",
    no_args_is_help=True,
)


def _board_files(name: str) -> list[Path]:
    return [Path(name)] if name.endswith(".toml") else []


BoardArgument = Annotated[
    str,
    typer.Argument(
        help="One of vip board list, or a TOML file with the same fields.",
        metavar="BOARD",
        callback=reading(_board_files),
    ),
]
WorkArgument = Annotated[
    str,
    typer.Argument(
        help="Application of the suite, program or assembly (.s) with its memory in "
        "PROGRAM.memory, folder of vip nn compile --preset pe, or ONNX file.",
        metavar="APPLICATION|PROGRAM|DIR|MODEL.onnx",
        callback=reading(lambda name: work_files([name])),
    ),
]


@app.command("list")
def list_boards() -> Answer:
    """List the boards, with their devices and pins.

    Example: vip board list
    """
    rows = table(
        "board", "device", "KiB", "MHz", "clk", "rx", "tx", "led", left=("board", "device")
    )
    for board in BOARDS.values():
        device = f"{board.device}-{board.grade} {board.package}"
        memory = f"{2 * board.block_rams}"
        rows.add_row(board.name, device, memory, f"{board.clock_mhz:g}", *board.pins.values())
    console.print(rows)
    console.print("KiB: of block RAM; MHz: of the oscillator, at pin clk", style="dim")
    boards = {name: dict(vars(board)) for name, board in BOARDS.items()}
    return Answer({"boards": boards, "devices": [*FAMILIES]})


def _design(
    *,
    board: BoardArgument,
    work: WorkArgument,
    model: ModelOption,
    memory: Annotated[
        int | None,
        typer.Option(
            help="KiB of memory, a multiple of 16, of SDRAM a power of two (default: as the data "
            "need).",
            min=16,
            max=1 << 15,
            metavar="KIB",
        ),
    ] = None,
    sdram: Annotated[
        int,
        typer.Option(
            help="Memory is the board's SDRAM, with 1 or 2 times the design's clock (default: "
            "block RAM).",
            min=0,
            max=2,
            metavar="1|2",
            show_default=False,
        ),
    ] = 0,
    whole: Annotated[
        bool, typer.Option("--whole", help="Keep the whole engine instead of trimming it.")
    ] = False,
    engines: Annotated[
        int,
        typer.Option(
            help="Engines that share the work of bp.", min=1, max=MAX_REQUESTERS - 1, metavar="N"
        ),
    ] = 1,
    clock: Annotated[
        float, typer.Option(help="Clock of the design in MHz.", min=8, max=400, metavar="MHZ")
    ] = CLOCK_MHZ,
) -> BoardDesign:
    """What the bit file is made for."""
    if not is_model(work):
        refuse(model, "for models, not for programs")
    elif not is_onnx(Path(work)):
        refuse(model, "for MODEL.onnx, not for a compiled model", "inputs")
    with shown() as progress:
        chosen = find_work(work, progress=progress, **model).on(engines)
        return board_design(
            board,
            chosen,
            memory_kib=memory,
            sdram=sdram,
            whole=whole,
            mhz=clock,
            progress=progress,
        )


DesignOption = Annotated[BoardDesign, _design]


@app.command()
def build(
    design: DesignOption,
    output: Annotated[
        Path | None,
        output_option(
            "Bit file to write, .fs of a Gowin FPGA (default: BOARD-WORK.bit).",
            writing(".bit", ".fs"),
        ),
    ] = None,
    placements: PlacementsOption = 1,
) -> Answer:
    """Make a board's bit file with an engine that is trimmed to its work.

    The engine, its memory on the chip and the serial line are mapped with Yosys, placed with
    nextpnr and packed, the fastest of several placements. Nothing of this has run on hardware
    yet; vip board sim runs the same Verilog.

    Example: vip board build ulx3s-85f bp
    """
    ending = design.board.family.ending
    file = output or Path(f"{design.board.name}-{design.application.name}{ending}")
    if file.suffix.lower() != ending:
        raise BoardError(f"{file}: a bit file of {design.board.name} ends in {ending}")
    with shown() as progress:
        built = build_board(design, seeds=placements, progress=progress)
    write_atomically(file, built.content)
    used = ", ".join(f"{number:,g} {name}" for name, number in built.used.items())
    console.print(f"{file}: {len(built.content):,} bytes; {used}")
    console.print(
        f"{built.seeds[built.seed]:.1f} MHz (seed {built.seed} of {placements}) where the clock is "
        f"{design.mhz:g}: a margin of {built.margin:.0%}"
    )
    return Answer(built.to_json())


@app.command()
def sim(
    design: DesignOption,
    netlist: Annotated[
        bool,
        typer.Option("--netlist", help="Simulate the cells of the bit file, which takes minutes."),
    ] = False,
) -> Answer:
    """Run work on a board's Verilog at its pins, and compare with the golden model.

    The serial line is a pseudo-terminal, and the program that talks to it is that of vip board run.
    Only the PLL is replaced: the board's clock is the chip's.

    Example: vip board sim ulx3s-85f bp
    """
    with shown() as progress:
        result = simulate_board(design, netlist=netlist, progress=progress)
    return _answer(result)


@app.command("run")
def run_on_board(
    design: DesignOption,
    port: Annotated[
        str, typer.Option(help="Serial port of the board, such as /dev/ttyUSB0.", metavar="TTY")
    ],
) -> Answer:
    """Run work on a board and compare with the golden model.

    The board is loaded with the bit file of the same design; another one is refused by name.

    Example: vip board run ulx3s-85f bp --port /dev/ttyUSB0
    """
    with shown() as progress:
        result = run_board(design, port, progress=progress)
    return _answer(result)


@app.command("test")
def check_board(
    design: DesignOption,
    port: Annotated[
        str | None,
        typer.Option(
            help="Serial port of the board (default: simulate it at its pins).", metavar="TTY"
        ),
    ] = None,
) -> Answer:
    """Test a board: its memory, an application, and the counters of the engine.

    All words of the memory are written and read twice each, then the application runs, as in vip
    board run, and the engine's cycles, if it counts them (--whole), must be those of its
    instructions and waits.

    Example: vip board test ulx3s-85f cnn --port /dev/ttyUSB0
    """
    with shown() as progress:
        if port is None:
            result = simulate_board(design, test=True, progress=progress)
        else:
            result = run_board(design, port, test=True, progress=progress)
    return _answer(result, tested=True)


@app.command("load")
def load(
    board: BoardArgument,
    file: Annotated[
        Path,
        typer.Argument(help="Bit file, of vip board build.", metavar="FILE", callback=reading()),
    ],
) -> Answer:
    """Load a bit file into a board over USB, with openFPGALoader.

    The board forgets it without power.

    Example: vip board load ulx3s-85f ulx3s-85f-bp.bit
    """
    load_board(board, file)
    console.print(f"{file}: loaded into {board}")
    return Answer({"board": board, "file": str(file)})


def _answer(result: BoardRun, *, tested: bool = False) -> Answer:
    design = result.design
    cycles = "" if result.cycles is None else f", {result.cycles:,} cycles"
    console.print(
        f"{design.what}: {result.values:,} values, "
        + ("all equal to the golden model's" if result.match else f"{result.differing:,} wrong")
    )
    if tested:
        console.print(f"{design.chip.vault_bytes:,} bytes of memory keep what is written")
    if result.counters:
        console.print(f"{result.counters['cycles']:,} cycles counted by the engine's last launch")
    console.print(f"{result.seconds:.1f} s{cycles}, {result.resent} requests sent again")
    return Answer(result.to_json(), code=0 if result.match else USER_ERROR)
