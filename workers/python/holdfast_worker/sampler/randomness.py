"""
Randomness that is looked up, not drawn: a uniform is a function of (run seed, draw, sample, token).

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11; constants and
known answers from Random123). Key: the seed's 64 bits. Counter: (token, sample, draw's low word,
draw's high word). So no generator has a state that a lost worker could take with it, and the order
in which rows are sampled does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
LOW = np.uint64(0xFFFFFFFF)
WORD = np.uint64(32)
# A token number that no completion reaches: the counter that gives a whole request its seed.
REQUEST_TOKEN = 0xFFFFFFFF


def philox(counter: Sequence[np.ndarray], key: tuple[int, int]) -> list[np.ndarray]:
    """
    Four words of 32 bits for each counter. `counter`: four uint64 arrays of one shape, values below
    2**32.
    """
    c0, c1, c2, c3 = (np.asarray(word, dtype=np.uint64) for word in counter)
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    for _ in range(ROUNDS):
        product0, product1 = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> WORD) ^ c1 ^ k0,
            product1 & LOW,
            (product0 >> WORD) ^ c3 ^ k1,
            product0 & LOW,
        )
        k0, k1 = (k0 + WEYL[0]) & LOW, (k1 + WEYL[1]) & LOW
    return [c0, c1, c2, c3]


def uniforms(seed: int, rows: Sequence[tuple[int, int]], *, first: int, count: int) -> np.ndarray:
    """
    [rows, count] float64, multiples of 2**-52 in [0, 1), of tokens `first`, `first + 1`, ... per
    (draw, sample).
    """
    token = np.arange(first, first + count, dtype=np.uint64)[None, :]
    high, low, _, _ = _words(seed, rows, token)
    return ((high << np.uint64(20)) | (low >> np.uint64(12))) * 2.0**-52


def request_seed(seed: int, draw: int, sample: int) -> int:
    """A seed of 63 bits for an engine that draws its own random numbers."""
    high, low, _, _ = _words(seed, [(draw, sample)], np.array([[REQUEST_TOKEN]], dtype=np.uint64))
    return (int(high[0, 0]) << 32 | int(low[0, 0])) & (2**63 - 1)


def _words(seed: int, rows: Sequence[tuple[int, int]], token: np.ndarray) -> list[np.ndarray]:
    draws = np.array([row[0] for row in rows], dtype=np.uint64)[:, None]
    samples = np.array([row[1] for row in rows], dtype=np.uint64)[:, None]
    shape = (len(rows), token.shape[1])
    counter = [
        np.broadcast_to(word, shape) for word in (token, samples, draws & LOW, draws >> WORD)
    ]
    seed %= 2**64
    return philox(counter, (seed & 0xFFFFFFFF, seed >> 32))
