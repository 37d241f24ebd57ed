"""Specifications of sweeps: what varies, what is measured, how the space is searched."""

import json
import math
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any

from hdl.config import ConfigurationError
from soc.generate.designs import Configuration
from soc.generate.presets import configuration_json, configuration_of, design
from support.files import read_bytes
from synth.errors import SynthesisError
from synth.physical.targets import TARGETS, default_targets, find_target

from .kernels import SweepError, check_kernel, kernel_name
from .tasks import engine_or_vault

#: The target by default, the first whose memories all configurations can have, and its objective.
_USUAL = {"xc7": "luts", "generic": "logic_ge"}
#: How configurations are chosen, the last by learning from the results of earlier ones.
LEARNING = ("tpe", "nsga2")
METHODS = ("grid", "random", *LEARNING)
_SPECIFICATION_BYTES = 1 << 20
#: Combinations of values to try when looking for one that a configuration allows.
_TRIED = 2000
_MOST = 100_000
_KEYS = {
    "design": str,
    "vary": dict,
    "kernels": list,
    "target": (str, list),
    "clock": bool,
    "power": bool,
    "mhz": (int, float),
    "objectives": list,
    "rtl": list,
    "search": dict,
}
_SEARCH_KEYS = {"method": str, "configurations": int, "seed": int, "batch": int}

#: Values of the fields that vary, by path.
Choice = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Specification:
    """A sweep.

    Attributes:
        base: configuration whose fields vary, as plain JSON data.
        vary: path of a field, with dots -> its values.
        kernels: that run on each configuration (:mod:`vip.sweeps.kernels`).
        targets: of the area (:data:`synth.physical.targets.TARGETS`); empty: it is not measured.
        clock: measure the clock of an engine mapped to standard cells.
        power: measure the power of an engine mapped to standard cells while it runs each kernel on
            the Verilog.
        mhz: clock that turns cycles into time if none is measured.
        objectives: columns to minimise, at least one.
        rtl: choices of some fields; configurations with these values run on the Verilog.
        method: one of :data:`METHODS`. configurations: number to choose; a grid takes all.
        seed: of the search. batch: configurations to choose before their results are seen.
    """

    base: Mapping[str, Any]
    vary: Mapping[str, Sequence[Any]]
    kernels: Sequence[Mapping[str, Any]]
    targets: Sequence[str] = ("xc7",)
    clock: bool = False
    power: bool = False
    mhz: float = 100.0
    objectives: Sequence[str] = ("time_us", "luts")
    rtl: Sequence[Choice] = ()
    method: str = "grid"
    configurations: int = 0
    seed: int = 1
    batch: int = 8
    names: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(map(kernel_name, self.kernels)))

    @property
    def size(self) -> int:
        """Number of configurations in the whole space, allowed or not."""
        return prod(len(values) for values in self.vary.values())

    def choices(self) -> list[Choice]:
        """All choices of the space; the last field varies fastest."""
        return [
            dict(zip(self.vary, values, strict=True)) for values in product(*self.vary.values())
        ]

    def on(self, choice: Choice) -> str:
        """The machine for a choice: ``rtl`` or ``model``."""
        chosen = any(all(choice[key] == value for key, value in one.items()) for one in self.rtl)
        return "rtl" if chosen else "model"


def configuration(base: Mapping[str, Any], choice: Choice) -> Configuration:
    """``base`` with the fields of ``choice``.

    Raises:
        ConfigurationError: it has no such field, or refuses a value.
    """
    raw = json.loads(json.dumps(base))
    for path, value in choice.items():
        *parents, last = path.split(".")
        place = raw
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last not in place:
            raise ConfigurationError(f"the design has no field {path}")
        place[last] = value
    return configuration_of(raw)


def _typed(raw: Mapping[str, Any], keys: Mapping[str, Any], where: str) -> None:
    for key, value in raw.items():
        if key not in keys:
            raise SweepError(f"{where}has no {key!r}; there are: {', '.join(keys)}")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise SweepError(f"{where}{key} can't be {value!r:.60}")


def read_specification(path: Path) -> Specification:
    """Read a specification from a TOML file; ``docs/exploration.md`` explains one.

    Raises:
        SweepError: not TOML, an unknown key, or a value that can't be used, such as one that no
            configuration allows; the message begins with ``path``.
        OSError: it can't be read.
    """
    try:
        raw = tomllib.loads(read_bytes(path, _SPECIFICATION_BYTES).decode())
        return _specification(raw, path.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SweepError(f"{path}: not TOML: {error}") from None
    except (SweepError, ConfigurationError, SynthesisError) as error:
        raise SweepError(f"{path}: {error}") from None


def _specification(raw: Mapping[str, Any], folder: Path) -> Specification:
    _typed(raw, _KEYS, "")
    search = raw.get("search", {})
    _typed(search, _SEARCH_KEYS, "search ")
    name = raw.get("design", "pe")
    base = engine_or_vault(design(folder / name if name.endswith(".json") else name))
    kernels = raw.get("kernels", [])
    if not kernels:
        raise SweepError("needs [[kernels]]")
    for number, kernel in enumerate(kernels):
        if not isinstance(kernel, dict):
            raise SweepError(f"kernels[{number}] must be a table, not {kernel!r:.60}")
        check_kernel(kernel, f"kernels[{number}]")
    settings = {key: raw[key] for key in ("clock", "power", "mhz", "objectives") if key in raw}
    if "target" in raw:
        settings["targets"] = _targets(raw["target"])
    specification = Specification(
        base=configuration_json(base),
        vary=_varied(raw.get("vary", {})),
        kernels=kernels,
        rtl=raw.get("rtl", []),
        method=search.get("method", "grid"),
        configurations=search.get("configurations", 0),
        seed=search.get("seed", 1),
        batch=search.get("batch", 8),
        **settings,
    )
    _check(specification)
    engines = [one.pe for one in (base, *_allowed(specification))]
    usual = next(name for name in _USUAL if all(name in default_targets(pe) for pe in engines))
    settings = {"targets": (usual,), "objectives": ("time_us", _USUAL[usual])} | settings
    return replace(specification, **settings)


def _targets(targets: str | list[Any]) -> tuple[str, ...]:
    """The names in ``target``, a name or a list of names."""
    if isinstance(targets, str):
        return (targets,) if targets else ()
    for number, one in enumerate(targets):
        if not isinstance(one, str) or one in targets[:number]:
            raise SweepError(f"target must be a list of different names, not {targets!r:.60}")
    return tuple(targets)


def _varied(raw: Mapping[str, Any], before: str = "") -> dict[str, list[Any]]:
    """Paths and values; a table within ``vary`` is a part of the design."""
    varied: dict[str, list[Any]] = {}
    for key, value in raw.items():
        if isinstance(value, dict):
            varied |= _varied(value, f"{before}{key}.")
        elif not isinstance(value, list) or not value:
            raise SweepError(f"vary.{before}{key} must be a list of values, not {value!r:.60}")
        else:
            varied[before + key] = value
    return varied


def _check(specification: Specification) -> None:
    for target in specification.targets:
        if target not in TARGETS:
            find_target(target)
    if specification.power and configuration(specification.base, {}).kind == "vault":
        raise SweepError("power can be measured for an engine only; the design is a vault")
    if not 0 < specification.mhz < math.inf:
        raise SweepError(f"mhz must be a number above 0, not {specification.mhz}")
    if specification.method not in METHODS:
        raise SweepError(
            f"search method must be one of {', '.join(METHODS)}, not {specification.method!r}"
        )
    if specification.size > _MOST and specification.method == "grid":
        raise SweepError(
            f"a grid may have at most {_MOST:,} configurations, not {specification.size:,}"
        )
    if specification.method != "grid" and specification.configurations < 1:
        raise SweepError(f"search configurations must be 1 or more for {specification.method}")
    if specification.batch < 1:
        raise SweepError(f"search batch must be 1 or more, not {specification.batch}")
    if not specification.objectives or not all(
        isinstance(one, str) for one in specification.objectives
    ):
        raise SweepError("objectives must be names of columns")
    for number, one in enumerate(specification.rtl):
        for key in one if isinstance(one, dict) else [str(one)]:
            if key not in specification.vary:
                raise SweepError(f"rtl[{number}] names {key!r}, which does not vary")


def _allowed(specification: Specification) -> list[Configuration]:
    """A configuration with each value.

    Raises:
        SweepError: no configuration of the space allows a value.
    """
    varied = specification.vary.items()
    return [_with(specification, path, value) for path, values in varied for value in values]


def _with(specification: Specification, path: str, value: Any) -> Configuration:
    combined = {**specification.vary, path: [value]}
    problem = ""
    for values in islice(product(*combined.values()), _TRIED):
        try:
            return configuration(specification.base, dict(zip(combined, values, strict=True)))
        except ConfigurationError as error:
            problem = problem or str(error)
    raise SweepError(f"vary.{path}: no configuration allows {value!r}: {problem}")


#: Measures configurations; the objectives of each, in their order; None: it failed.
Measure = Callable[[Sequence[Choice]], Sequence[Sequence[float] | None]]


def explore(specification: Specification, measure: Measure) -> None:
    """Measure the configurations that a specification asks for: all at once or, where its method
    learns from their objectives, batch by batch."""
    if specification.method in LEARNING:
        _sample(specification, measure)
        return
    choices = specification.choices()
    if specification.method == "random":
        count = min(specification.configurations, len(choices))
        choices = random.Random(specification.seed).sample(choices, count)
    measure(choices)


def _sample(specification: Specification, measure: Measure) -> None:
    """Measure what one of Optuna's samplers chooses, which learns from the objectives."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers = {"tpe": optuna.samplers.TPESampler, "nsga2": optuna.samplers.NSGAIISampler}
    study = optuna.create_study(
        directions=["minimize"] * len(specification.objectives),
        sampler=samplers[specification.method](seed=specification.seed),
    )
    left = specification.configurations
    while left > 0:
        trials = [study.ask() for _ in range(min(left, specification.batch))]
        left -= len(trials)
        objectives = measure([_choice(specification, trial) for trial in trials])
        for trial, values in zip(trials, objectives, strict=True):
            if values is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, list(values))


def _choice(specification: Specification, trial: Any) -> Choice:
    # By index, as values may be lists, which Optuna does not take. Indices of numbers have an
    # order.
    return {
        path: values[
            trial.suggest_int(path, 0, len(values) - 1)
            if all(type(value) in (int, float) for value in values)
            else trial.suggest_categorical(path, range(len(values)))
        ]
        for path, values in specification.vary.items()
    }
