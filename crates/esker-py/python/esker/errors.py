"""What can go wrong, beside OSError, IndexError, TypeError and ValueError themselves."""

from __future__ import annotations

__all__ = ["ChecksumError", "Conflict", "FormatError", "GivenUp", "MissingName", "RangeError", "RankError"]


class MissingName(KeyError):
    """No variable, dimension or attribute has this name; the message has the nearest ones."""

    def __str__(self) -> str:
        # KeyError shows its argument as a name in quotes; ours is a sentence.
        return str(self.args[0]) if self.args else ""


class ChecksumError(ValueError):
    """Values are not those of the checksum that came with them; nothing was written."""


class Conflict(RuntimeError):
    """Another writer of the container has committed the same elements, or definitions, meanwhile.

    Nothing of this commit is in the container. Open it again, and do it again.
    """


class FormatError(ValueError):
    """The file is not a classic netCDF file or a container, or it is damaged."""


class GivenUp(RuntimeError):
    """The transaction is given up: another rank has aborted it, or a number that it needs was given up.

    Nothing of it is in the container.
    """


class RangeError(ValueError):
    """Some values did not fit the type they were converted to.

    All others were transferred; those that did not fit are fill values.
    """


class RankError(RuntimeError):
    """Another rank of a collective call failed, so that this rank did nothing either."""
