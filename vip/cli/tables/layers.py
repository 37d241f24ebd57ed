"""Tables of the layers of a model: predicted, and as a run took them."""

from collections.abc import Mapping, Sequence

from vip.cli.console import console, table
from vip.models.layers import LayerFigures, worth_changing
from vip.models.run import ModelRun


def show_predicted(layers: Sequence[LayerFigures], batch: int) -> None:
    """Print the predicted cycles of each layer, beside the fewest."""
    text = ("layer", "kind", "output")
    heads = (*text, "cycles", "moves before", "bound", "use")
    rows = table(*heads, left=text, title=f"predicted cycles, batch {batch}")
    for layer in layers:
        size = " x ".join(map(str, layer.output))
        cycles = (layer.predicted, layer.predicted_moves, layer.bound)
        numbers = [f"{value:,.0f}" for value in cycles]
        numbers[0] += "" if layer.known else " ?"
        rows.add_row(layer.name, layer.kind, size, *numbers, f"{layer.use:.0%}")
    rows.add_section()
    sums = [sum(column) for column in zip(*map(_cycles, layers), strict=True)]
    computing = sum(layer.computing for layer in layers)
    use = computing / (sums[0] + sums[1])
    rows.add_row("all", "", "", *(f"{value:,.0f}" for value in sums), f"{use:.0%}")
    console.print(rows)


def _cycles(layer: LayerFigures) -> tuple[float, float, float]:
    return layer.predicted, layer.predicted_moves, layer.bound


def show_worth(layers: Sequence[LayerFigures]) -> None:
    """Name the layers that take most cycles beyond their bounds, and why."""
    named = worth_changing(layers)
    if named:
        console.print("worth changing, by cycles beyond the fewest:")
    for layer in named:
        console.print(
            f"  {layer.name} ({layer.kind}, node {layer.node}): {layer.taken:,.0f} cycles, at "
            f"least {layer.bound:,.0f}: {layer.reason}"
        )


def show_layers(run: ModelRun) -> None:
    """Print the cycles, bytes and energy of each layer, and of all."""
    energies = [name for name in run.costs if name.endswith("_uj")]
    heads = ("cycles", "moves", "bound", "busy", "use", "bytes read", "written")
    rows = table("layer", *heads, *(["uJ"] if energies else ()), left=("layer",), title="layers")
    for layer in run.layers:
        rows.add_row(
            layer.name,
            *(f"{value:,.0f}" for value in (layer.cycles, layer.moves, layer.bound)),
            *(f"{share:.0%}" for share in (layer.busy, layer.use)),
            *_costs(layer.costs, energies),
        )
    rows.add_section()
    sums = (
        sum(layer.cycles for layer in run.layers),
        sum(layer.moves for layer in run.layers),
        sum(layer.bound for layer in run.layers),
    )
    use = sum(layer.computing for layer in run.layers) / run.cycles
    busy = sum(layer.vector_busy for layer in run.layers) / max(
        1, sum(sum(layer.causes.values()) for layer in run.layers)
    )
    shares = (f"{busy:.0%}", f"{use:.0%}")
    rows.add_row("all", *(f"{n:,.0f}" for n in sums), *shares, *_costs(run.costs, energies))
    console.print(rows)
    show_worth(run.layers)
    if run.no_energy:
        console.print(run.no_energy)


def _costs(costs: Mapping[str, float], energies: Sequence[str]) -> list[str]:
    cells = [f"{costs.get(name, 0):,.0f}" for name in ("read_bytes", "written_bytes")]
    return cells + [f"{sum(costs.get(name, 0) for name in energies):.2f}"] * bool(energies)
