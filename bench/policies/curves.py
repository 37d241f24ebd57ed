"""``python -m bench.policies.curves``: what a search for an agent finds by generations, and what
agents move by the length of a run, from the records."""

from pathlib import Path
from typing import Annotated

import typer

from bench.checkout import ROOT
from bench.measurement import BenchError
from bench.record import values
from bench.terminal import run
from sim_tb.measure.agents.learning import LENGTHS, MIXES_LEARNED
from support.picture import COLOURS, MARKERS, MUTED, SUFFIXES, check_picture, picture

from .agents import GENERATIONS

__all__ = ["draw_curves"]

_PICTURE = ROOT / "docs" / "images" / "agents.png"
_INCHES = (9.0, 4.0)
_TITLES = {
    "sequential_random_25": "three sequential readers, one random",
    "random_mixed": "four random",
    "unlike": "four unlike",
}


def draw_curves(path: Path) -> None:
    """Draw the records "agents" and "schedulers" into ``path``.

    Raises:
        BenchError: a figure is not recorded.
        OSError: it can't be written.
    """
    found, policies = values("agents"), values("schedulers")
    try:
        with picture(*_INCHES, path) as figure:
            search, learning = figure.subplots(1, 2)
            numbers = range(1, GENERATIONS + 1)
            for name, text, style in (
                ("middle", "middle of the generation", "--"),
                ("best", "best so far", "-"),
            ):
                costs = [found[f"search_{name}_{number}"] for number in numbers]
                search.plot(numbers, costs, style, label=text)
            search.axhline(1, color=MUTED, linewidth=1.2, label="first-ready-timed")
            search.set(xlabel="generation", ylabel="time for the same traffic", title="search")
            search.grid()
            search.legend()
            for mix, colour, marker in zip(MIXES_LEARNED, COLOURS, MARKERS, strict=False):
                for record, name, style in (
                    (policies, "learned", "--"),
                    (found, "winner_1", "-"),
                ):
                    shares = [
                        record[f"{name}_after_{length}_{mix}"]
                        / found[f"timed_after_{length}_{mix}"]
                        for length in LENGTHS
                    ]
                    learning.plot(
                        LENGTHS,
                        shares,
                        style,
                        color=colour,
                        marker=marker,
                        label=_TITLES[mix] if name == "winner_1" else None,
                    )
            learning.axhline(1, color=MUTED, linewidth=1.2)
            learning.set(
                xscale="log",
                xlabel="accesses of each requester since reset",
                ylabel="GB/s over those of first-ready-timed",
                title="the search's best agent; dashed: usual features",
            )
            learning.grid()
            learning.legend()
    except KeyError as error:
        raise BenchError(f"not recorded: {error.args[0]}") from None


def main(
    path: Annotated[Path, typer.Option(help="Picture to write, .png or .svg.")] = _PICTURE,
) -> None:
    """Draw the search for agents and their learning, from the records; the document's picture as
    PNG and SVG."""
    check_picture(path)
    for suffix in SUFFIXES if path == _PICTURE else (path.suffix,):
        draw_curves(path.with_suffix(suffix))


if __name__ == "__main__":
    run(main)
