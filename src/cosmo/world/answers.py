"""What can be wrong with the answers of a turn, before any of them is carried out."""

import math

from cosmo.node import NO_NODE
from cosmo.world.compiled import compiled
from cosmo.world.records import EN_TURN, SN_TURN
from cosmo.world.turns import EN_ROWS, RIDE_ROWS, SN_ROWS

BAD_ACTION, BAD_INTERVAL, BAD_NUMBERS = 1, 2, 3


@compiled
def fault(turn, holding):
    """What is wrong with the answers, before any of them is carried out; 0 if nothing.

    Plain Python, for an engine that has no kernel of its own, can run it as well.
    """
    if holding != EN_TURN:
        reject = turn.seen.sn.shape[1] + 1
        for row in range(turn.counts[EN_ROWS]):
            action = turn.answers.action[row]
            if action < 0 or action > reject:
                return BAD_ACTION
            if 0 < action < reject and turn.seen.sn[row, action - 1] == NO_NODE:
                return BAD_ACTION
    if holding != SN_TURN:
        for row in range(turn.counts[SN_ROWS]):
            if not turn.answers.interval_ms[row] > 0.0:
                return BAD_INTERVAL
            sends = False
            for k in range(turn.answers.send.shape[1]):
                sends = sends or turn.answers.send[row, k]
            if sends:
                for k in range(turn.answers.numbers.shape[1]):
                    if not math.isfinite(turn.answers.numbers[row, k]):
                        return BAD_NUMBERS
    for row in range(turn.counts[RIDE_ROWS]):
        if turn.answers.ride[row]:
            for k in range(turn.answers.ride_numbers.shape[1]):
                if not math.isfinite(turn.answers.ride_numbers[row, k]):
                    return BAD_NUMBERS
    return 0
