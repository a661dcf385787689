"""Progress in terminals and notebooks, on request."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["progress_bar"]


def progress_bar(label: str = "", file: TextIO | None = None) -> Callable[[int, int], None]:
    """A function to pass as ``progress=``: draws a line that grows, in a terminal or a notebook.

    >>> import io
    >>> drawn = io.StringIO()
    >>> bar = progress_bar("reading", drawn)
    >>> bar(50, 100); bar(100, 100)
    >>> drawn.getvalue().endswith("100%\\n")
    True
    """
    out = file or sys.stderr
    last = [0.0]

    def tell(done: int, total: int) -> Any:
        now = time.monotonic()
        finished = done >= total
        if not finished and now - last[0] < 0.1:
            return
        last[0] = now
        share = done / total if total else 1.0
        full = int(share * 30)
        out.write(f"\r{label + ' ' if label else ''}{'█' * full}{'·' * (30 - full)} {share:4.0%}{chr(10) if finished else ''}")
        out.flush()

    return tell
