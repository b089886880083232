"""The networks of `policy.networks` for one row, compiled: training acts by them.

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
def output(row, place, x, inputs, outputs, which):
    """One output of the layer at `place`."""
    total = row[place + inputs * outputs + which]
    for i in range(inputs):
        total += x[i] * row[place + i * outputs + which]
    return total


@compiled
def en_scores(
    row, local, locals_, remote, remotes, sns, most, branch, fusion, gate_first, out, a, b, c
):
    """Gate scores then route scores, or, with one flat head, the values of all actions.

    `remote` has `remotes` features of each of `sns` SNs; routes to those beyond, of which there are
    columns for `most`, score -inf.
    """
    first = layer(row, 0, local, locals_, a, branch, True)
    first = layer(row, first, a, branch, b, branch, True)
    # The last head has [local, SN] or [local, SN, reject], and scores begin behind the gate's.
    outputs, scores = 3, out
    if gate_first:
        outputs, scores = 2, out[2:]
    half, heads, place = fusion // 2, 0, 0
    for sn in range(sns):
        heads = layer(row, first, remote[sn * remotes :], remotes, a, branch, True)
        heads = layer(row, heads, a, branch, b[branch:], branch, True)
        heads = layer(row, heads, b, 2 * branch, a, fusion, True)
        # Heads lie one after the other: (fusion + 1) numbers for each output.
        place = heads + (3 * (fusion + 1) if gate_first else 0)
        if most == 1:
            break
        scores[1 + sn] = output(row, place + fusion + 1, a, fusion, outputs, 1)
        for k in range(fusion):  # as networks.pooled has it
            if sn == 0:
                c[k] = a[k]
            elif k < half:
                c[k] += a[k]
            else:
                c[k] = max(c[k], a[k])
    if most == 1:
        if gate_first:
            dueling(row, heads, a, fusion, out, 2, b)
        dueling(row, place, a, fusion, scores, outputs, b)
        return
    for k in range(half):
        c[k] /= np.float32(sns)
    if gate_first:
        dueling(row, heads, c, fusion, out, 2, b)
    value = output(row, place, c, fusion, 1, 0)
    scores[0] = output(row, place + fusion + 1, c, fusion, outputs, 0)
    mean = np.float32(0.0)
    for k in range(1 + sns):
        mean += scores[k]
    if not gate_first:
        scores[1 + most] = output(row, place + fusion + 1, c, fusion, outputs, 2)
        mean += scores[1 + most]
    mean /= np.float32(sns + outputs - 1)
    for k in range(most + outputs - 1):
        scores[k] = value + scores[k] - mean
    for k in range(sns, most):
        scores[1 + k] = -np.inf


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
