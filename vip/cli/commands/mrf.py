"""``vip mrf``: Markov random fields of the user."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from microkernels.bp.choice import Form
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.smoothness import coarse_costs, smoothness_costs
from microkernels.data.pictures import need_decoder, read_photographs
from microkernels.graphs.problem import read_graph
from microkernels.mrf.disparities import ENDINGS, encoded_flow
from microkernels.mrf.matching import Cost, displacements, flow_costs
from microkernels.mrf.pair import PairOptions
from microkernels.mrf.pixels import (
    denoising_costs,
    grey_levels,
    read_costs,
    read_edges,
    read_seeds,
    segmentation_costs,
)
from sim_tb.runner.build import need_simulator
from support.extras import need, together
from support.files import write_atomically
from support.picture import check_picture
from vip.cli.console import show_values, shown
from vip.cli.groups import Answer
from vip.cli.lazy import CommandGroup
from vip.cli.tables.machine import MACHINES, show_model_saturated
from vip.mrf.graph import GraphRun, solve_graph
from vip.mrf.options import MOST_LEVELS, Method, MrfOptions
from vip.mrf.result import MrfRun
from vip.mrf.run import mrf_stereo, solve_mrf
from vip.output import write_json

from .option_groups.machine import PlaceOption
from .options import (
    PresetOption,
    drawing,
    file_option,
    output_option,
    reading,
    writing,
)

SmoothOption = Annotated[
    str,
    typer.Option(
        help="Smoothness cost between labels: linear, linear:T, potts, quadratic, quadratic:T "
        "(truncated at T), or a .npy file with a matrix."
    ),
]
WeightOption = Annotated[int, typer.Option(help="Factor of the smoothness costs.", min=0)]
BitsOption = Annotated[int, typer.Option(help="Element width: 8, 16 or 32.")]
CutOption = Annotated[
    int | None, typer.Option(help="Largest data cost (default: all).", min=1, max=32767)
]
LabelsOption = Annotated[
    Path | None,
    output_option("Write the labels as .npy or as .png (grey levels).", writing(".npy", ".png")),
]


EnergiesOption = Annotated[
    Path | None,
    file_option(
        "Write the energy after each iteration as JSON, or plot it as PNG or SVG.", drawing(".json")
    ),
]


def _solving(
    *,
    method: Annotated[
        Method,
        typer.Option(help="BP-M, TRW-S, or either of them coarse to fine (hbp, htrws)."),
    ] = "bp",
    iterations: Annotated[int, typer.Option(help="Iterations.", min=0, max=1000)] = 5,
    coarse: Annotated[
        int,
        typer.Option(help="Iterations on each coarse level (hbp, htrws).", min=0, max=1000),
    ] = 5,
    levels: Annotated[
        int,
        typer.Option(
            help="Levels of hbp and htrws, each half as wide and high as the one before.",
            min=2,
            max=MOST_LEVELS,
        ),
    ] = 2,
    on: PlaceOption = "golden",
    messages: Annotated[
        Form,
        typer.Option(
            help="How a machine computes messages: with a matrix of all pairs of labels, with "
            "shifts (for convex and truncated costs), or whichever takes fewer cycles. The result "
            "is the same."
        ),
    ] = "auto",
    damping: Annotated[
        int,
        typer.Option(
            help="Share of the old message in a new one, in sixteenths (bp, hbp).",
            min=0,
            max=15,
        ),
    ] = 0,
    preset_name: PresetOption = "pe",
) -> MrfOptions:
    """Method and machine."""
    return MrfOptions(
        config=preset_name,
        method=method,
        iterations=iterations,
        coarse_iterations=coarse,
        levels=levels,
        on=on,
        form=messages,
        damping=damping,
    )


SolveOption = Annotated[MrfOptions, _solving]


#: Help of the kind of data costs.
_COST_HELP = (
    "Data cost: absolute difference or Birchfield-Tomasi, the mean of the channels or (-sum) their "
    "sum, or census."
)


def _pair(
    *,
    labels: Annotated[int, typer.Option(help="Number of disparities.", min=2, max=256)] = 16,
    first: Annotated[int, typer.Option(help="Disparity of the first label.", min=0)] = 0,
    scale: Annotated[
        float,
        typer.Option(
            help="Scale both photographs first by this factor, at most 1, with antialiasing."
        ),
    ] = 1.0,
    cost: Annotated[
        Cost,
        typer.Option(help=_COST_HELP),
    ] = "ad",
    cut: CutOption = None,
    smooth: SmoothOption = "linear:2",
    weight: WeightOption = 20,
    edges: Annotated[
        str | None,
        typer.Option(
            help="Edge weights: gradient:T,P multiplies the smoothness cost by P between pixels "
            "whose colours differ by less than T grey levels."
        ),
    ] = None,
    bits: BitsOption = 16,
) -> PairOptions:
    """How two photographs are compared, and the smoothness cost."""
    return PairOptions(
        labels=labels,
        first=first,
        scale=scale,
        cost=cost,
        truncation=cut,
        smooth=smooth,
        weight=weight,
        edges=edges,
        bits=bits,
    )


PairOption = Annotated[PairOptions, _pair]


app = typer.Typer(
    cls=CommandGroup,
    help="Solve your Markov random fields by belief propagation.",
    no_args_is_help=True,
)


@app.command()
def stereo(
    left_image: Annotated[
        Path, typer.Argument(metavar="LEFT", help="Left photograph.", callback=reading())
    ],
    right_image: Annotated[
        Path,
        typer.Argument(metavar="RIGHT", help="Right photograph, rectified.", callback=reading()),
    ],
    solve: SolveOption,
    pair: PairOption,
    energies: EnergiesOption = None,
    output: Annotated[
        Path | None,
        output_option(
            "Write the disparities as .npy, .pfm, or .png (8 bits, scaled).", writing(*ENDINGS)
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        file_option("True disparities: a picture (0: unknown), .pfm, .npy or .npz.", reading()),
    ] = None,
    truth_factor: Annotated[
        float | None,
        typer.Option(help="Factor by which --truth scales disparities (default: 1)."),
    ] = None,
    mask: Annotated[
        Path | None,
        file_option(
            "Picture for the errors, white where both photographs show the point.", reading()
        ),
    ] = None,
) -> Answer:
    """Compute the disparities of two photographs, and their errors against the truth.

    The photographs may have any size. Costs are integers: data costs are grey levels (ad, bt) or
    bits (census), and smoothness costs are in the same unit. Errors are in pixels of the
    photographs as stored, even with --scale.

    Example: vip mrf stereo left.png right.png --labels 60 --truth d.png --truth-factor 4 -o out.png

    Example: vip mrf stereo left.png right.png --scale 0.5 --on model --energies energies.json
    """
    _check_extras(solve, energies, output, left_image, right_image, scaled=pair.scale != 1)
    with shown() as progress:
        result = mrf_stereo(
            left_image,
            right_image,
            pair,
            solve,
            truth=truth,
            truth_factor=truth_factor,
            mask=mask,
            progress=progress,
        )
    if output is not None:
        result.save(output)
    _write_energies(result, energies)
    rows: dict[str, str] = {}
    for name, errors in result.errors.items():
        rows[f"bad 1.0, {name} pixels"] = f"{errors['bad_1']:.2f} %"
        rows[f"bad 2.0, {name} pixels"] = f"{errors['bad_2']:.2f} %"
        rows[f"mean error, {name} pixels"] = f"{errors['mean']:.2f}"
    return _answer(result, output, rows)


@app.command()
def denoise(
    noisy: Annotated[Path, typer.Argument(metavar="IMAGE", help="Grey image.", callback=reading())],
    solve: SolveOption,
    energies: EnergiesOption = None,
    output: LabelsOption = None,
    labels: Annotated[int, typer.Option(help="Grey levels of the result.", min=2, max=256)] = 64,
    cut: CutOption = None,
    smooth: SmoothOption = "linear:8",
    weight: WeightOption = 2,
    bits: BitsOption = 16,
) -> Answer:
    """Remove noise from a grey image.

    The data cost is the absolute difference from the label's grey level. With 256 labels, each
    label is one grey level.

    Example: vip mrf denoise noisy.png --labels 256 --smooth linear:20 -o clean.png
    """
    _check_extras(solve, energies, output, noisy)
    (photograph,) = read_photographs(noisy)
    costs = denoising_costs(photograph, labels, cut)
    levels = grey_levels(labels)
    run = _solve(costs, smooth, weight, bits, solve, energies, output, levels=levels)
    return _answer(run, output)


@app.command()
def segment(
    picture: Annotated[Path, typer.Argument(metavar="IMAGE", help="Image.", callback=reading())],
    seeds: Annotated[
        Path,
        typer.Argument(
            metavar="SEEDS",
            help="Grey image: 1, 2, ... where the part is known, 0 elsewhere.",
            callback=reading(),
        ),
    ],
    solve: SolveOption,
    energies: EnergiesOption = None,
    output: LabelsOption = None,
    cut: CutOption = None,
    smooth: SmoothOption = "potts",
    weight: WeightOption = 40,
    bits: BitsOption = 16,
) -> Answer:
    """Divide an image into two or more parts, each with seeds.

    The data cost is the difference from the mean colour of a part's seeds.

    Example: vip mrf segment photograph.png seeds.png -o parts.png
    """
    _check_extras(solve, energies, output, picture, seeds)
    (photograph,) = read_photographs(picture)
    costs = segmentation_costs(photograph, read_seeds(seeds), cut)
    run = _solve(costs, smooth, weight, bits, solve, energies, output)
    return _answer(run, output)


@app.command()
def flow(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Image.", callback=reading())],
    second: Annotated[
        Path, typer.Argument(metavar="SECOND", help="The next image.", callback=reading())
    ],
    solve: SolveOption,
    energies: EnergiesOption = None,
    output: Annotated[
        Path | None,
        output_option("Write the motions (right, down) as .npy or .flo.", writing(".npy", ".flo")),
    ] = None,
    window: Annotated[
        int, typer.Option(help="Motions across and down, odd: 3, 5 or 7 are 9, 25 or 49 labels.")
    ] = 5,
    cost: Annotated[Cost, typer.Option(help=_COST_HELP)] = "ad",
    cut: CutOption = None,
    smooth: SmoothOption = "linear:3",
    weight: WeightOption = 20,
    bits: BitsOption = 16,
) -> Answer:
    """Compute the motion of each pixel from one image to the next (optical flow).

    A label is a motion of whole pixels; smoothness costs are of the distance across plus that down.

    Example: vip mrf flow first.png second.png --window 7 --bits 8 --cut 60 --weight 5 -o motion.flo
    """
    _check_extras(solve, energies, None, first, second)
    motions = displacements(window)
    photographs = read_photographs(first, second)
    costs = flow_costs(*photographs, window=window, cost=cost, truncation=cut)
    run = _solve(costs, smooth, weight, bits, solve, energies, None, window=window)
    if output is not None:
        write_atomically(output, encoded_flow(motions[run.labels], output.suffix.lower()))
    return _answer(run, None)


@app.command("solve")
def solve_costs(
    costs: Annotated[
        Path,
        typer.Argument(
            metavar="COSTS", help="NumPy array [y, x, label] of integers.", callback=reading()
        ),
    ],
    solve: SolveOption,
    energies: EnergiesOption = None,
    output: LabelsOption = None,
    smooth: SmoothOption = "linear:2",
    weight: WeightOption = 20,
    edges: Annotated[
        Path | None,
        typer.Option(
            help="Edge weights: .npz with the arrays right and down, each of the edges from pixel "
            "[y, x] to its right or lower neighbour; they multiply the smoothness cost.",
            callback=reading(),
        ),
    ] = None,
    bits: BitsOption = 16,
) -> Answer:
    """Solve a Markov random field whose data costs are in a file.

    Example: vip mrf solve costs.npy --smooth quadratic:7 --weight 10 --on model -o labels.npy
    """
    _check_extras(solve, energies, output)
    data_costs = read_costs(costs)
    weights = None if edges is None else read_edges(edges)
    run = _solve(data_costs, smooth, weight, bits, solve, energies, output, edges=weights)
    return _answer(run, output)


@app.command()
def graph(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="GRAPH.npz",
            help="Arrays labels, costs, edges and pairs of integers (docs/mrf.md).",
            callback=reading(),
        ),
    ],
    iterations: Annotated[int, typer.Option(help="Iterations.", min=1, max=1000)] = 5,
    marginals: Annotated[
        bool,
        typer.Option(
            "--marginals",
            help="Find probabilities: costs are their negative logarithms, in 256ths.",
        ),
    ] = False,
    on: PlaceOption = "golden",
    preset_name: PresetOption = "pe",
    output: Annotated[
        Path | None,
        output_option(
            "Write the labels, or a row of probabilities per variable, as .npy.", writing(".npy")
        ),
    ] = None,
) -> Answer:
    """Solve a graph of any shape, on one engine. Variables may have any numbers of labels.

    Example: vip mrf graph graph.npz --iterations 10 --on model -o labels.npy
    """
    if on == "rtl":
        need_simulator()
    with shown() as progress:
        field = read_graph(file)
        run = solve_graph(
            field,
            preset_name,
            iterations=iterations,
            marginals=marginals,
            on=on,
            progress=progress,
        )
    if output is not None:
        np.save(target := BytesIO(), _array(run))
        write_atomically(output, target.getvalue())
    values = {"solved on": MACHINES[on], "energy": f"{run.energy:,}"}
    if run.cycles is not None:
        values["cycles"] = f"{run.cycles:,}"
        values["cycles per update"] = f"{run.cycles / run.updates:.1f}"
    if on != "golden":
        values["beliefs and messages"] = f"{run.differing:,} DIFFER" if run.differing else "exact"
    show_values(f"{len(field.costs):,} variables, {len(field.edges):,} edges", values)
    return Answer(asdict(run), code=1 if run.differing else 0)


def _array(run: GraphRun) -> NDArray[np.generic]:
    """Labels, or a row of probabilities per variable."""
    if run.marginals is None:
        return np.array(run.labels, np.uint8)
    return np.array(list(zip_longest(*run.marginals, fillvalue=0)), np.float32).T


def _check_extras(
    solve: MrfOptions,
    energies: Path | None,
    output: Path | None,
    *pictures: Path,
    scaled: bool = False,
) -> None:
    """Check that what reading ``pictures``, solving and writing uses is installed."""
    with together():
        for one in pictures:
            need_decoder(one)
        if scaled:
            need("skimage", "scaled photographs")
        if solve.on == "rtl":
            need_simulator()
        if output is not None and output.suffix.lower() == ".png":
            need("PIL", "pictures")
        if energies is not None and energies.suffix.lower() != ".json":
            check_picture(energies)


def _solve(
    costs: NDArray[np.signedinteger],
    smooth: str,
    weight: int,
    bits: int,
    solve: MrfOptions,
    energies: Path | None,
    output: Path | None,
    *,
    window: int | None = None,
    edges: EdgeWeights | None = None,
    levels: NDArray[np.integer] | None = None,
) -> MrfRun:
    labels = costs.shape[2]
    problem = BpProblem(costs, smoothness_costs(labels, smooth, weight, window), bits, edges)
    coarse = coarse_costs(labels, smooth, weight, solve.levels, window)
    with shown() as progress:
        run = solve_mrf(problem, replace(solve, coarse_smoothness=coarse), progress=progress)
    if output is not None:
        run.save(output, levels)
    _write_energies(run, energies)
    return run


def _write_energies(run: MrfRun, energies: Path | None) -> None:
    if energies is None:
        return
    if energies.suffix.lower() == ".json":
        write_json(energies, run.energies_json())
    else:
        run.plot(energies)


def _answer(run: MrfRun, output: Path | None, rows: Mapping[str, str] | None = None) -> Answer:
    """Print a solution, which is in ``output`` if that is a picture, with ``rows`` of its own; the
    code is 1 if it differs from the golden model's."""
    values = {
        "solved on": MACHINES[run.on],
        "energy before": f"{run.energies[0]:,}",
        "energy": f"{run.energy:,}",
    }
    if run.bounds:
        values["lower bound"] = f"{run.bounds[-1]:,}"
    values |= rows or {}
    for name, cycles in run.cycles.items():
        values[f"cycles of {name}" if name else "cycles"] = f"{cycles:,}"
    if run.cycles_per_update is not None:
        values["cycles per update per engine"] = f"{run.cycles_per_update:.2f}"
    if run.fill:
        values["engines left without a pixel by the schedule"] = f"{100 * run.fill:.1f} %"
    if run.on != "golden":
        form = f"messages, with {'a matrix' if run.form == 'matrix' else 'shifts'}"
        values[form] = "exact" if run.match else f"{run.differing:,} elements DIFFER"
        values["labels chosen on"] = f"the {run.chosen_on}"
    problem = run.problem
    size = f"{problem.width} x {problem.height} pixels, {problem.labels} labels"
    show_values(f"{size} of {problem.bits} bits", values)
    show_model_saturated(run.saturated)
    return Answer(run.to_json(), code=0 if run.match else 1, picture=output)
