"""Forward and backward passes of the 600-32-32-6 network, compiled with numba, over packed observations.

Inputs are sparse (some 20 of 600 are on), so the first layer adds the rows of the active inputs, which is ten times
faster than a dense product. Single precision and an approximate tanh (error under 1e-6): for training only, never for
scoring.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from weightgym.rewards.weight_program.network import ACTIONS, HIDDEN, INPUTS

_W2 = INPUTS * HIDDEN + HIDDEN
_W3 = _W2 + HIDDEN * HIDDEN + HIDDEN
_END = _W3 + HIDDEN * ACTIONS


@njit(nogil=True)
def active_inputs(rows):
    """Packed observations (n, 10) as (starts, inputs): ``inputs[starts[i]:starts[i+1]]`` are on in observation i."""
    count = rows.shape[0]
    starts = np.zeros(count + 1, np.int64)
    inputs = np.empty(count * 64, np.int32)
    end = 0
    for i in range(count):
        for row in range(10):
            word = rows[i, row]
            bit = row * 60
            while word:
                if word & np.uint64(1):
                    if end == inputs.size:
                        longer = np.empty(inputs.size * 2, np.int32)
                        longer[:end] = inputs
                        inputs = longer
                    inputs[end] = bit
                    end += 1
                word >>= np.uint64(1)
                bit += 1
        starts[i + 1] = end
    return starts, inputs[:end].copy()


@njit(nogil=True, fastmath=True, inline="always")
def _tanh(z):
    """A rational approximation (the coefficients of Eigen's ``ptanh``), which vectorises."""
    for k in range(z.size):
        x = min(max(z[k], np.float32(-7.9)), np.float32(7.9))
        s = x * x
        p = np.float32(-2.76076847742355e-16)
        p = p * s + np.float32(2.00018790482477e-13)
        p = p * s + np.float32(-8.60467152213735e-11)
        p = p * s + np.float32(5.12229709037114e-08)
        p = p * s + np.float32(1.48572235717979e-05)
        p = p * s + np.float32(6.37261928875436e-04)
        p = p * s + np.float32(4.89352455891786e-03)
        q = np.float32(1.19825839466702e-06)
        q = q * s + np.float32(1.18534705686654e-04)
        q = q * s + np.float32(2.26843463243900e-03)
        q = q * s + np.float32(4.89352518554385e-03)
        z[k] = x * p / q


@njit(nogil=True, fastmath=True)
def forward(weights, inputs, h1, h2, out):
    """Fill both hidden layers and the outputs for one observation."""
    w1 = weights[: INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
    w2 = weights[_W2 : _W2 + HIDDEN * HIDDEN].reshape(HIDDEN, HIDDEN)
    w3 = weights[_W3:_END].reshape(HIDDEN, ACTIONS)
    for k in range(HIDDEN):
        h1[k] = weights[INPUTS * HIDDEN + k]
    for i in inputs:
        for k in range(HIDDEN):
            h1[k] += w1[i, k]
    _tanh(h1)
    for k in range(HIDDEN):
        h2[k] = weights[_W2 + HIDDEN * HIDDEN + k]
    for i in range(HIDDEN):
        for k in range(HIDDEN):
            h2[k] += h1[i] * w2[i, k]
    _tanh(h2)
    for k in range(ACTIONS):
        out[k] = weights[_END + k]
    for i in range(HIDDEN):
        for k in range(ACTIONS):
            out[k] += h2[i] * w3[i, k]


@njit(nogil=True, fastmath=True)
def backward(weights, inputs, h1, h2, change, gradient):
    """Add to ``gradient`` that of ``sum(change * outputs)``. Overwrites both hidden layers."""
    w2 = weights[_W2 : _W2 + HIDDEN * HIDDEN].reshape(HIDDEN, HIDDEN)
    w3 = weights[_W3:_END].reshape(HIDDEN, ACTIONS)
    g1 = gradient[: INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
    g2 = gradient[_W2 : _W2 + HIDDEN * HIDDEN].reshape(HIDDEN, HIDDEN)
    g3 = gradient[_W3:_END].reshape(HIDDEN, ACTIONS)
    for k in range(ACTIONS):
        gradient[_END + k] += change[k]
    for i in range(HIDDEN):
        total = np.float32(0)
        for k in range(ACTIONS):
            g3[i, k] += h2[i] * change[k]
            total += w3[i, k] * change[k]
        h2[i] = total * (1 - h2[i] * h2[i])
    for k in range(HIDDEN):
        gradient[_W2 + HIDDEN * HIDDEN + k] += h2[k]
    for i in range(HIDDEN):
        total = np.float32(0)
        for k in range(HIDDEN):
            g2[i, k] += h1[i] * h2[k]
            total += w2[i, k] * h2[k]
        h1[i] = total * (1 - h1[i] * h1[i])
    for k in range(HIDDEN):
        gradient[INPUTS * HIDDEN + k] += h1[k]
    for i in inputs:
        for k in range(HIDDEN):
            g1[i, k] += h1[k]


@njit(nogil=True)
def first_outputs(weights, starts, inputs, out):
    """The first output for every observation (a critic's value)."""
    h1, h2, y = np.empty(HIDDEN, np.float32), np.empty(HIDDEN, np.float32), np.empty(ACTIONS, np.float32)
    for i in range(starts.size - 1):
        forward(weights, inputs[starts[i] : starts[i + 1]], h1, h2, y)
        out[i] = y[0]


@njit(nogil=True)
def log_softmax(y, p):
    """Turn ``y`` into log-probabilities in place and fill ``p`` with the probabilities."""
    top = y.max()
    total = np.float32(0)
    for k in range(y.size):
        p[k] = np.exp(y[k] - top)
        total += p[k]
    for k in range(y.size):
        y[k] -= top + np.log(total)
        p[k] /= total


@njit(nogil=True, fastmath=True)
def ppo_gradient(actor, critic, starts, inputs, chosen, actions, old, advantages, returns, clip, entropy, ga, gc):
    """Add to ``ga`` and ``gc`` the gradients of PPO's clipped objective and of minus half the critic's square error."""
    h1, h2 = np.empty(HIDDEN, np.float32), np.empty(HIDDEN, np.float32)
    y, p, change = np.empty(ACTIONS, np.float32), np.empty(ACTIONS, np.float32), np.empty(ACTIONS, np.float32)
    for i in chosen:
        seen = inputs[starts[i] : starts[i + 1]]
        forward(actor, seen, h1, h2, y)
        log_softmax(y, p)
        a, advantage = actions[i], advantages[i]
        ratio = np.exp(y[a] - old[i])
        inside = ratio < 1 + clip if advantage > 0 else ratio > 1 - clip
        push = ratio * advantage if inside else np.float32(0)
        spread = np.float32(0)
        for k in range(ACTIONS):
            spread -= p[k] * y[k]
        for k in range(ACTIONS):
            change[k] = -push * p[k] - entropy * p[k] * (y[k] + spread)
        change[a] += push
        backward(actor, seen, h1, h2, change, ga)
        forward(critic, seen, h1, h2, y)
        change[:] = 0
        change[0] = returns[i] - y[0]
        backward(critic, seen, h1, h2, change, gc)


@njit(nogil=True)
def advantages_of(values, rewards, ends, terminal, gamma, trace, advantages, returns):
    """Generalised advantage estimates, episode after episode; ``values`` has one more entry an episode."""
    begin = 0
    for e in range(ends.size):
        following = np.float32(0) if terminal[e] else values[ends[e] + e]
        running = np.float32(0)
        for t in range(ends[e] - 1, begin - 1, -1):
            delta = rewards[t] + gamma * following - values[t + e]
            running = delta + gamma * trace * running
            following = values[t + e]
            advantages[t] = running
            returns[t] = running + following
        begin = ends[e]
