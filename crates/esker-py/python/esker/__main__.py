"""``python -m esker``: the command ``esker``."""

from __future__ import annotations

import signal
import sys

from . import _esker


def main() -> int:
    """Runs the command with this program's arguments; gives its exit code."""
    # Python would only note Ctrl-C and wait for the command to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _esker.command(sys.argv[1:], [sys.executable, "-m", "esker"])


if __name__ == "__main__":
    sys.exit(main())
