"""Choice of the configurations of a sweep: all of a grid, at random, or by Optuna's samplers.

A search proposes a batch of configurations and sees the objectives of all of them before it
proposes the next, so its choices do not depend on how many run at a time or on which ends first.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from support.extras import need

from .specification import Choice, Specification


class Search(Protocol):
    """Batches of choices; :meth:`learn` follows each."""

    def __iter__(self) -> Iterator[list[Choice]]: ...

    def learn(self, objectives: Sequence[Sequence[float] | None]) -> None:
        """Take the objectives of the last batch, in its order; None: the configuration failed."""


class _Listed:
    """Choices that are known in advance, as one batch."""

    def __init__(self, choices: list[Choice]) -> None:
        self._choices = choices

    def __iter__(self) -> Iterator[list[Choice]]:
        yield self._choices

    def learn(self, objectives: Sequence[Sequence[float] | None]) -> None:
        """Do nothing: the choices are fixed."""


class _Sampled:
    """Choices of one of Optuna's samplers, which learn from the objectives."""

    def __init__(self, specification: Specification) -> None:
        need("optuna", "searches other than grid and random")
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spec = specification
        samplers = {"tpe": optuna.samplers.TPESampler, "nsga2": optuna.samplers.NSGAIISampler}
        self._study = optuna.create_study(
            directions=["minimize"] * len(specification.objectives),
            sampler=samplers[specification.method](seed=specification.seed),
        )
        self._failed = optuna.trial.TrialState.FAIL
        self._trials: list[optuna.trial.Trial] = []

    def __iter__(self) -> Iterator[list[Choice]]:
        left = self._spec.configurations
        while left > 0:
            self._trials = [self._study.ask() for _ in range(min(left, self._spec.batch))]
            left -= len(self._trials)
            yield [self._choice(trial) for trial in self._trials]

    def _choice(self, trial: Any) -> Choice:
        # By index, as values may be lists, which Optuna does not take. Indices of numbers have an
        # order.
        return {
            path: values[
                trial.suggest_int(path, 0, len(values) - 1)
                if all(type(value) in (int, float) for value in values)
                else trial.suggest_categorical(path, range(len(values)))
            ]
            for path, values in self._spec.vary.items()
        }

    def learn(self, objectives: Sequence[Sequence[float] | None]) -> None:
        for trial, values in zip(self._trials, objectives, strict=True):
            if values is None:
                self._study.tell(trial, state=self._failed)
            else:
                self._study.tell(trial, list(values))


def search(specification: Specification) -> Search:
    """The search of a specification.

    Raises:
        MissingExtraError: Optuna is needed but not installed.
    """
    if specification.method in ("tpe", "nsga2"):
        return _Sampled(specification)
    choices = specification.choices()
    if specification.method == "random":
        count = min(specification.configurations, len(choices))
        choices = random.Random(specification.seed).sample(choices, count)
    return _Listed(choices)
