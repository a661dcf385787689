"""How long it takes to plan: shared by adjoint.py and the processes that it starts."""

import time


def actions(make):
    """Seconds and forward steps of all actions of a schedule."""
    begin, forward = time.perf_counter(), 0
    for action in make():
        if type(action).__name__ == "Forward":
            forward += action.n1 - action.n0
        if type(action).__name__ == "EndReverse":
            break
    return time.perf_counter() - begin, forward
