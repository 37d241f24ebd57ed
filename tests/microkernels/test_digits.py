"""The stored weights of the networks for digits."""

import numpy as np
import pytest

import microkernels.apps.digits
from microkernels.apps.digits import accuracy, load_digits, trained

from .digits import arrays


@pytest.mark.parametrize(("name", "known"), [("CNN", 0.98), ("MLP", 0.97)])
def test_trained_networks_know_digits(name: str, known: float) -> None:
    _, (images, labels) = load_digits()
    scores = trained(name).scores(images)
    assert accuracy(scores, labels) >= known


@pytest.mark.slow
def test_weights_are_those_of_the_training() -> None:
    with np.load(microkernels.apps.digits._WEIGHTS) as stored:
        made = arrays(load_digits()[0])
        assert sorted(made) == sorted(stored)
        for name, values in made.items():
            np.testing.assert_allclose(values, stored[name], rtol=1e-6, atol=1e-9, err_msg=name)
