"""Runs pytest with `esker.adjoint.Revolver` where programs find pyrevolve's: `with_ours.py PYTEST-ARGUMENTS`.

Fails if no test has used it."""

import sys
from pathlib import Path

import pyrevolve
import pytest

import esker.adjoint as ea

made = 0


class Revolver(ea.Revolver):
    def __init__(self, *arguments, **named):
        global made
        made += 1
        super().__init__(*arguments, **named)


if __name__ == "__main__":
    pyrevolve.Revolver = Revolver
    # Devito gives pyrevolve's out under its own name.
    import devito

    devito.Revolver = Revolver
    # Tests find their own package's folder, and here `utils.py`, which is not in pyrevolve's archive.
    sys.path[0:1] = [str(Path.cwd()), str(Path(__file__).parent)]
    code = pytest.main(sys.argv[1:])
    print(f"{made} of esker's Revolvers were made")
    sys.exit(code or not made)
