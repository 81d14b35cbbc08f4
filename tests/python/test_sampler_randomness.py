"""randomness.py: Philox against its published answers, and what a uniform depends on."""

import numpy as np

from holdfast_worker.sampler.randomness import philox, request_seed, uniforms

ALL_ONES = 0xFFFFFFFF


def test_philox_gives_the_known_answers_of_random123():
    zero = [np.zeros(1, np.uint64)] * 4
    ones = [np.full(1, ALL_ONES, np.uint64)] * 4
    pi = [np.full(1, word, np.uint64) for word in (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)]
    assert [int(word[0]) for word in philox(zero, (0, 0))] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert [int(word[0]) for word in philox(ones, (ALL_ONES, ALL_ONES))] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert [int(word[0]) for word in philox(pi, (0xA4093822, 0x299F31D0))] == [
        0xD16CFE09,
        0x94FDCCEB,
        0x5001E420,
        0x24126EA1,
    ]


def test_uniforms_are_of_seed_draw_sample_and_token_alone():
    rows = [(0, 0), (0, 1), (1, 0), (2**33, 0), (2**33 + 1, 5)]
    whole = uniforms(3, rows, first=0, count=20)
    assert np.array_equal(uniforms(3, rows[::-1], first=4, count=8), whole[::-1, 4:12])
    assert len(np.unique(np.concatenate([whole, uniforms(4, rows, first=0, count=20)]))) == 200
    assert whole.min() >= 0 and whole.max() < 1


def test_uniforms_fill_the_unit_interval_evenly():
    drawn = np.sort(uniforms(1, [(draw, 0) for draw in range(100)], first=0, count=100).ravel())
    # Kolmogorov-Smirnov distance of 10,000 draws: 1.95 / sqrt(n) is passed with probability 0.001; the draws are fixed.
    assert np.abs(drawn - np.arange(10_000) / 10_000).max() < 1.95 / 100


def test_request_seed_differs_by_draw_and_sample_and_fits_an_int64():
    seeds = {request_seed(seed, draw, sample) for seed in (-1, 0) for draw in range(20) for sample in range(20)}
    assert len(seeds) == 800
    assert all(0 <= seed < 2**63 for seed in seeds)
