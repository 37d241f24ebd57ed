"""The model of what the network adds to layers measured without it."""

import pytest

from bench.measurement import BenchError
from bench.network_share import Rates, network_shares, read_rates
from bench.record import values
from microkernels.common.fixed_point import ELEMENT_BYTES

RATES = Rates(neighbour=0.8, uniform=0.25, one=0.1)


def kernels() -> dict[str, float]:
    return values("kernels")


def test_bytes_follow_from_the_tiles() -> None:
    shares = {share.name: share for share in network_shares(RATES, kernels())}
    # A tile of 56 x 28 pixels of 64 channels has 172 pixels around it.
    assert shares["conv1_2"].near_bytes == (58 * 30 - 56 * 28) * 64 * ELEMENT_BYTES
    assert shares["conv1_1"].near_bytes == shares["pool1"].near_bytes == 0
    # All sums of 14 x 14 pixels of 64 channels, four segments, but the 14 x 7 of the own segment;
    # and the inputs, 14 x 7 pixels of 64 channels that lie in other vaults after pooling.
    sums = (4 * 14 * 14 - 14 * 7) * 64
    assert shares["conv4_1"].far_bytes == (sums + 14 * 7 * 64) * ELEMENT_BYTES
    assert shares["conv4_3"].far_bytes == (sums + 14 * 7 * 128) * ELEMENT_BYTES
    # Pooling works on half of the channels of twice the pixels.
    assert shares["pool3"].far_bytes == 14 * 7 * 128 * ELEMENT_BYTES
    # Whole maps have zeros around, no neighbours; inputs are 64 channels of 14 x 14 pixels, the
    # first time too, and the outputs of the last go to fc6, where they are counted.
    for name in ("conv5_1", "conv5_2", "conv5_3"):
        assert shares[name].near_bytes == 0
        assert shares[name].far_bytes == (7 * 16 + 64) * 14 * 14 * ELEMENT_BYTES
    # Each vault reads y and x twice and the cells once, in chunks, for 32 sequences.
    assert shares["lstm"].far_bytes == 32 * (2 * (512 + 160) + 1024) * ELEMENT_BYTES
    assert shares["fc6"].far_bytes == (25088 // 8 + 7 * 1024) * ELEMENT_BYTES


def test_times_follow_from_the_rates() -> None:
    slow = Rates(neighbour=0.4, uniform=0.125, one=0.05)
    for fast, other in zip(
        network_shares(RATES, kernels()), network_shares(slow, kernels()), strict=True
    ):
        assert other.network_us == pytest.approx(2 * fast.network_us)
        assert other.barriers_us == pytest.approx(2 * fast.barriers_us)
        assert other.kernel_us == fast.kernel_us
    share = network_shares(RATES, kernels())[1]
    cycles = share.near_bytes / 32 * 6 / 0.8
    assert share.network_us == pytest.approx(cycles * 0.8e-3)
    assert share.added == pytest.approx((share.network_us + share.barriers_us) / share.kernel_us)


def test_rates_are_those_of_the_recorded_traffic() -> None:
    rates = read_rates(values("network"))
    assert 0.6 < rates.neighbour < 1
    assert 0.1 < rates.one < rates.uniform < rates.neighbour


def test_records_that_lack_something_are_refused_in_one_line() -> None:
    with pytest.raises(BenchError, match="lacks '8x4_neighbour_answers_flits'") as error:
        read_rates({})
    assert "\n" not in str(error.value)
    known = kernels()
    del known["fc7_batch_1"]
    with pytest.raises(BenchError, match="lacks fc7_batch_1"):
        network_shares(RATES, known)
