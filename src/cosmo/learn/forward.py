"""The networks of `control.networks` for one row, compiled: training acts by them.

A row of parameters is walked from its start: layers lie one after the other, weights then bias, in
the order of their `shapes`. Tests hold these functions and the NumPy ones to the same numbers.
"""

import math

import numpy as np

from cosmo.world.compiled import compiled


@compiled
def layer(row, place, x, inputs, out, outputs, relu):
    """`out` = x W + b of the layer at `place`, perhaps rectified; returns where the next one is."""
    # Slices: with sums as indices the compiler could not use vector instructions.
    bias = place + inputs * outputs
    offsets = row[bias : bias + outputs]
    for o in range(outputs):
        out[o] = offsets[o]
    for i in range(inputs):
        weights, value = row[place + i * outputs : place + (i + 1) * outputs], x[i]
        for o in range(outputs):
            out[o] += value * weights[o]
    if relu:
        for o in range(outputs):
            out[o] = max(out[o], np.float32(0.0))
    return bias + outputs


@compiled
def dueling(row, place, x, inputs, out, outputs, scratch):
    """V + A − mean A."""
    place = layer(row, place, x, inputs, scratch, 1, False)
    place = layer(row, place, x, inputs, out, outputs, False)
    mean = np.float32(0.0)
    for o in range(outputs):
        mean += out[o]
    mean /= np.float32(outputs)
    for o in range(outputs):
        out[o] = scratch[0] + out[o] - mean
    return place


@compiled
def encode(row, x, inputs, first, second, out, dimensions, a, b):
    """The semantic of a normalised state."""
    place = layer(row, 0, x, inputs, a, first, True)
    place = layer(row, place, a, first, b, second, True)
    layer(row, place, b, second, out, dimensions, False)


@compiled
def en_scores(row, local, locals_, remote, remotes, branch, fusion, routes, gate_first, out, a, b):
    """Gate scores then route scores, or, with one flat head, the values of all actions."""
    place = layer(row, 0, local, locals_, a, branch, True)
    place = layer(row, place, a, branch, b, branch, True)
    place = layer(row, place, remote, remotes, a, branch, True)
    place = layer(row, place, a, branch, b[branch:], branch, True)
    place = layer(row, place, b, 2 * branch, a, fusion, True)
    if gate_first:
        place = dueling(row, place, a, fusion, out, 2, b)
        dueling(row, place, a, fusion, out[2:], routes, b)
    else:
        dueling(row, place, a, fusion, out, routes + 1, b)


@compiled
def en_greedy(scores, routes, gate_first):
    """The decoder: reject unless accepting scores more, then the best route."""
    first, count = 0, routes + 1
    if gate_first:
        if scores[0] >= scores[1]:
            return routes
        first, count = 2, routes
    best = 0
    for k in range(1, count):
        if scores[first + k] > scores[first + best]:
            best = k
    return best


@compiled
def _sigmoid(x):
    return np.float32(0.5) * (np.float32(math.tanh(np.float32(0.5) * x)) + np.float32(1.0))


@compiled
def sn_values(row, x, inputs, projection, size, hidden, out, actions, a, b, c):
    """Q of one SN decision; `hidden` moves on."""
    place = layer(row, 0, x, inputs, a, projection, True)
    place = layer(row, place, a, projection, b, 3 * size, False)
    place = layer(row, place, hidden, size, c, 3 * size, False)
    for k in range(size):
        reset = _sigmoid(b[k] + c[k])
        update = _sigmoid(b[size + k] + c[size + k])
        new = np.float32(math.tanh(b[2 * size + k] + reset * c[2 * size + k]))
        hidden[k] = (np.float32(1.0) - update) * new + update * hidden[k]
    dueling(row, place, hidden, size, out, actions, b)
