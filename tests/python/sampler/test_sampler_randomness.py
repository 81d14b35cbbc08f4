"""randomness.py: Philox against its published answers, and what a uniform depends on."""

import numpy as np

from holdfast_worker.sampler.randomness import philox, request_seed, uniforms

ALL_ONES = 0xFFFFFFFF


def words(answer):
    return " ".join(f"{int(word[0]):08x}" for word in answer)


def test_philox_gives_the_known_answers_of_random123():
    zero = [np.zeros(1, np.uint64)] * 4
    ones = [np.full(1, ALL_ONES, np.uint64)] * 4
    pi = [np.full(1, word, np.uint64) for word in (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)]
    assert words(philox(zero, (0, 0))) == "6627e8d5 e169c58d bc57ac4c 9b00dbd8"
    assert words(philox(ones, (ALL_ONES, ALL_ONES))) == "408f276d 41c83b0e a20bc7c6 6d5451fd"
    assert words(philox(pi, (0xA4093822, 0x299F31D0))) == "d16cfe09 94fdcceb 5001e420 24126ea1"


def test_uniforms_are_of_seed_draw_sample_and_token_alone():
    rows = [(0, 0), (0, 1), (1, 0), (2**33, 0), (2**33 + 1, 5)]
    whole = uniforms(3, rows, first=0, count=20)
    assert np.array_equal(uniforms(3, rows[::-1], first=4, count=8), whole[::-1, 4:12])
    assert len(np.unique(np.concatenate([whole, uniforms(4, rows, first=0, count=20)]))) == 200
    assert whole.min() >= 0 and whole.max() < 1


def test_uniforms_fill_the_unit_interval_evenly():
    drawn = np.sort(uniforms(1, [(draw, 0) for draw in range(100)], first=0, count=100).ravel())
    # Kolmogorov-Smirnov distance of 10,000 draws: 1.95 / sqrt(n) is passed with probability 0.001;
    # the draws are fixed.
    assert np.abs(drawn - np.arange(10_000) / 10_000).max() < 1.95 / 100


def test_request_seed_differs_by_draw_and_sample_and_fits_an_int64():
    seeds = {
        request_seed(seed, draw, sample)
        for seed in (-1, 0)
        for draw in range(20)
        for sample in range(20)
    }
    assert len(seeds) == 800
    assert all(0 <= seed < 2**63 for seed in seeds)
