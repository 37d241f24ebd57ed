"""``vip bench``: run experiments and compare them with their records, or record them."""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from sim_tb.runner.build import need_simulator
from soc.generate.presets import configuration_json, design
from support.extras import need, together
from support.picture import check_picture
from vip.cli.commands.options import JsonOption
from vip.cli.console import console, table
from vip.cli.lazy import LazyGroup
from vip.output import write_json

from .experiment import (
    SIMULATION,
    SYNTHESIS,
    BenchError,
    Experiment,
    Measurement,
    cpu_seconds,
    find,
    listed,
    say,
)
from .record import Record, clean_commit, read_record, tool_versions, write_record
from .sources import fingerprints

#: Options that don't affect figures: files to write, and where to run.
_FREE = ("picture", "jobs", "scheduler")
_COMMON: dict[str, Any] = {
    "more": Annotated[
        list[str] | None,
        typer.Argument(metavar="[MORE]...", help="More experiments, with default options."),
    ],
    "record": Annotated[bool, typer.Option("--record", help="Save the results as the new record.")],
    "stale": Annotated[
        bool, typer.Option("--stale", help="Measure nothing; say whether the record is stale.")
    ],
    "json": JsonOption,
}


def verdict(new: Measurement, old: float | None) -> str:
    """The comparison of a figure with the recorded one, as text."""
    if old is None:
        return "new"
    if new.tolerance is None:
        return ""
    if abs(new.value - old) <= new.tolerance * abs(old):
        return "as recorded"
    return "better: record it" if (new.value > old) == new.more_is_better else "WORSE"


def _stale(name: str, experiment: Experiment) -> list[str]:
    """The reasons why an experiment's record is stale; empty if it is not."""
    record = read_record(name)
    if why := record.unusable:
        return [why]
    return list(record.stale(fingerprints(experiment.module), tool_versions(experiment.tools)))


def _say_stale(name: str, experiment: Experiment) -> None:
    for why in _stale(name, experiment):
        console.print(f"stale: {name}: {why}", style="yellow", soft_wrap=True)


def _show(name: str, results: Sequence[Measurement], recorded: Record) -> bool:
    """Show results, beside the record if there is one; returns whether any got worse."""
    heads = ("recorded", "") if recorded.format else ()
    rows = table("figure", "value", "unit", *heads, left=("figure", "unit", ""), title=name)
    worse = False
    for item in results:
        cells = [item.name, _figure(item.value), item.unit]
        if recorded.format:
            before = recorded.results.get(item.name, {}).get("value")
            judged = verdict(item, before)
            worse |= judged == "WORSE"
            cells += ["" if before is None else _figure(before), judged]
        rows.add_row(*cells)
    console.print(rows)
    return worse


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.5g}"


def _measure(
    name: str, experiment: Experiment, options: dict[str, Any], *, record: bool
) -> tuple[bool, dict[str, Any]]:
    """Run, show and, if requested, record; returns whether any figure got worse, and plain data."""
    other = [f"--{option}" for option in options if option not in _FREE]
    if record and other:
        raise BenchError(f"{name}: --record can't be combined with {', '.join(other)}")
    machine = {"on": _defaults(experiment).get("on", "rtl"), **options}["on"]
    simulated = "verilator" in experiment.tools and machine == "rtl"
    # A run on the timing model emits no Verilog.
    emits = options.get("on", "rtl") == "rtl"
    covered = {*SIMULATION, *SYNTHESIS} if simulated or not emits else set()
    with together():
        if simulated:
            need_simulator()
        for package in sorted({*experiment.tools} - covered):
            need(package, f"figures of {name}")
        check_picture(options.get("picture"))
    commit = clean_commit() if record else ""
    recorded = Record() if other else read_record(name)
    before = cpu_seconds()
    results: list[Measurement] = []
    try:
        for item in experiment.run(**options):
            results.append(item)
    except BenchError:
        if results:
            _show(name, results, recorded)
        raise
    spent = cpu_seconds() - before
    configurations = {preset: configuration_json(design(preset)) for preset in experiment.presets}
    figures = {item.name: {"value": item.value, "unit": item.unit} for item in results}
    worse = _show(name, results, recorded)
    if record:
        if clean_commit() != commit:
            raise BenchError(f"{name}: not recorded: the checkout changed during the measurement")
        write_record(
            name,
            results,
            commit=commit,
            measured=fingerprints(experiment.module),
            tools=tool_versions(experiment.tools),
            configurations=configurations,
            cpu_seconds=spent,
        )
    return worse, {"results": figures, "configurations": configurations}


def _run(
    chosen: Sequence[str], options: dict[str, Any], *, record: bool, stale: bool, json: Any
) -> None:
    """Run experiments one after another, the first with ``options``.

    Raises:
        typer.Exit: with code 1, if any figure got worse.
    """
    experiments = {name: find(name) for name in chosen}
    if stale or not (record or options):
        for name, experiment in experiments.items():
            _say_stale(name, experiment)
    if stale:
        return
    worse, reports = [], {}
    for name, experiment in experiments.items():
        if len(experiments) > 1:
            say(name)
        got_worse, reports[name] = _measure(name, experiment, options, record=record)
        worse += [name] * got_worse
        options = {}
    write_json(json, {"experiments": reports})
    if worse:
        raise typer.Exit(1)


def _defaults(experiment: Experiment) -> dict[str, Any]:
    parameters = inspect.signature(experiment.run).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _command(name: str) -> Callable[..., None]:
    """The command of an experiment, with its parameters and the common options."""
    experiment = find(name)
    hints = get_type_hints(experiment.run, include_extras=True)
    defaults = _defaults(experiment)

    def command(
        more: list[str] | None, record: bool, stale: bool, json: Any, **options: Any
    ) -> None:
        # A repeatable option that is absent is an empty list.
        other = {
            option: value
            for option, value in options.items()
            if value != defaults[option] and value != []
        }
        _run([name, *(more or ())], other, record=record, stale=stale, json=json)

    kinds = {option: hints[option] for option in defaults} | _COMMON
    defaults |= {"more": None, "record": False, "stale": False, "json": None}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                option, inspect.Parameter.KEYWORD_ONLY, default=defaults[option], annotation=kind
            )
            for option, kind in kinds.items()
        ]
    )
    command.__annotations__ = kinds
    text = inspect.cleandoc(experiment.run.__doc__ or "")
    example = "" if "Example:" in text else f"\n\nExample: vip bench {name} --json {name}.json"
    command.__doc__ = text + example
    return command


class Experiments(LazyGroup):
    """All experiments; a module is imported when its experiment is called."""

    panels: ClassVar[dict[str | None, dict[str, str]]] = {
        None: {name: one.summary for name, one in listed().items()}
    }

    def function(self, name: str) -> Callable[..., None]:
        return _command(name)


app = typer.Typer(
    cls=Experiments,
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def main(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("--all", help="Run all experiments, the shortest first: hours.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Measure nothing; name the stale records.")
    ] = False,
) -> None:
    """Run experiments and compare their figures with those in bench/results.

    The exit code is 1 if a figure got worse. Recording needs a clean Git checkout.

    Example: vip bench bp area --record
    """
    if context.invoked_subcommand is None and (every or stale):
        names = sorted(listed(), key=lambda name: find(name).minutes)
        _run(names, {}, record=False, stale=stale, json=None)
