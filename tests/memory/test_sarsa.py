"""The agent against its golden model, and the model against SARSA in real numbers."""

import random

import pytest

from hdl.config import ConfigurationError
from memory.agent.config import AgentConfig
from memory.agent.features import FEATURES, feature
from memory.config import VaultConfig
from tests.memory.sarsa_model import SarsaModel
from tests.memory.sarsa_play import compare

CONFIGS = {
    "default": AgentConfig(),
    "two lanes": AgentConfig(epoch=4),
    "an odd number in two lanes": AgentConfig(
        features=("reads", "rows:1", "run:1,2,3,4,5,6,7", "direction", "hits", "writes", "queue"),
        epoch=4,
        theta_bits=24,
        gamma_shift=8,
    ),
    "one feature": AgentConfig(features=("hits",), epoch=4),
    "spare cycles": AgentConfig(epoch=16, epsilon_shift=4, alpha_shift=3, theta_bits=20),
    "few bits of a fraction": AgentConfig(
        features=("hits", "rows"), alpha_shift=3, gamma_shift=10, theta_bits=16, epsilon_shift=4
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_action_is_that_of_the_model(simulate, name):
    model = compare(simulate, CONFIGS[name], 150)
    assert any(weight != CONFIGS[name].initial for row in model.theta for weight in row)


@pytest.mark.parametrize("limit", [(1 << 15) - 1, -1 << 15])
def test_weights_saturate(simulate, monkeypatch, limit):
    """Weights begin at a limit, which random rewards never lead them to."""
    monkeypatch.setattr(AgentConfig, "initial", limit)
    assert compare(simulate, CONFIGS["few bits of a fraction"], 60, seed=3).saturated > 2


def test_learning_follows_the_equations():
    """With fine weights the model is SARSA in real numbers."""
    config = AgentConfig(theta_bits=32, epsilon_shift=4)
    model = SarsaModel(config)
    rng = random.Random(3)
    unit = 2.0**-config.fraction_bits
    theta = [[weight * unit for weight in row] for row in model.theta]
    assert sum(theta[0]) == pytest.approx(2**config.gamma_shift)
    open_decisions = []
    for number in range(400):
        state = tuple(rng.randrange(len(one.thresholds) + 1) for one in config.state)
        earned = rng.randrange(3)
        values = [sum(w * 2.0**-v for w, v in zip(row, state, strict=True)) for row in theta]
        action = model.decide(state, earned)
        assert values[action] == pytest.approx(max(values), abs=1e-3) or model.explored
        if open_decisions:
            gain = earned / 2 + (1 - 2.0**-config.gamma_shift) * values[action]
            open_decisions[-1].append(gain - open_decisions[-1][2])
        if number >= config.update_lag:
            past, chosen, _, delta = open_decisions.pop(0)
            for place, bucket in enumerate(past):
                theta[chosen][place] += 2.0 ** -(config.alpha_shift + bucket) * delta
        open_decisions.append([state, action, values[action]])
    for row, exact in zip(model.theta, theta, strict=True):
        assert [weight * unit for weight in row] == pytest.approx(exact, abs=1e-3)


def test_a_bandit_is_learned():
    """One action alone is rewarded: it is what the agent does."""
    config = AgentConfig(features=("direction",), epsilon_shift=6)
    model = SarsaModel(config)
    action = 0
    late = 0
    for number in range(4000):
        action = model.decide((number % 2,), 2 * (action == 2))
        late += number >= 3000 and action == 2
    assert late > 950


def test_features():
    assert feature("run").thresholds == FEATURES["run"]
    one = feature("reads:1,4,9")
    assert [one.bucket(value) for value in (0, 1, 3, 4, 8, 9, 16)] == [0, 1, 1, 2, 2, 3, 3]
    assert [feature(text).bits for text in ("reads:3", "reads", "reads:1,2,3,4,5,6,7")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"features": ()}, "must be 1 to 8, not 0"),
        ({"features": tuple(FEATURES)}, "must be 1 to 8, not 11"),
        ({"features": "reads"}, "must be a tuple of names"),
        ({"features": (1,)}, "must be a tuple of names"),
        ({"features": ("speed",)}, "there is no feature 'speed'; there are: reads, "),
        ({"features": ("reads", "reads:1")}, "must differ"),
        ({"features": ("reads:1,2",)}, "1, 3 or 7 thresholds"),
        ({"features": ("reads:",)}, "whole numbers separated by commas"),
        ({"features": ("reads:-1",)}, "whole numbers separated by commas"),
        ({"features": ("reads:4,2,8",)}, "must rise, from 1"),
        ({"features": ("reads:0,2,8",)}, "must rise, from 1"),
        ({"features": ("reads:99999",)}, "must rise, from 1"),
        ({"epoch": 0}, "agent.epoch must be a power of two from 4 to 64"),
        ({"epoch": 2}, "agent.epoch must be"),
        ({"alpha_shift": 2}, "agent.alpha_shift must be a whole number from 3 to 8"),
        ({"gamma_shift": 11}, "agent.gamma_shift must be a whole number from 3 to 10"),
        ({"epsilon_shift": 3}, "agent.epsilon_shift must be a whole number from 4 to 10"),
        ({"theta_bits": 15}, "agent.theta_bits must be a whole number from 16 to 32"),
        ({"gamma_shift": 10, "alpha_shift": 8, "theta_bits": 19}, "from 20 to 32"),
        ({"seed": 0}, "agent.seed must be a whole number from 1 to 65535"),
    ],
)
def test_wrong_agents(values, message):
    with pytest.raises(ConfigurationError, match=message):
        AgentConfig(**values)


def test_a_vault_without_an_agent():
    with pytest.raises(ConfigurationError, match="agent must be an AgentConfig"):
        VaultConfig(scheduler="learned", agent=None)
