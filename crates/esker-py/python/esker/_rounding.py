"""Values that are rounded before they are stored, as netCDF4 rounds them."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

import numpy as np

__all__ = ["ROUNDING", "Rounding", "rounding_of_attributes", "rounding_of_encoding"]

#: Keys of an encoding that say how values are rounded.
ROUNDING = ("significant_digits", "quantize_mode", "least_significant_digit")

#: The attribute by which netCDF-C says that values were rounded to so many bits.
BITS = "_QuantizeBitRoundNumberOfSignificantBits"

#: The attribute by which netCDF4-python says that values were rounded to so many decimal places.
PLACES = "least_significant_digit"


#: netCDF's fill value of floating-point numbers, of variables that have no other.
FILL = 9.969209968386869e36


@dataclasses.dataclass(frozen=True)
class Rounding:
    """To so many bits of the mantissa, or to so many decimal places."""

    bits: int | None = None
    places: int | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """What the variable says of itself, as netCDF4's do."""
        if self.bits is not None:
            return {BITS: np.int32(self.bits)}
        return {PLACES: np.int32(self.places)} if self.places is not None else {}

    def __call__(self, values: Any, fill: Any) -> Any:
        """Rounded values; those that are ``fill`` stay, and so does what is not a number.

        >>> Rounding(bits=3)(np.array([1.1, 1e20, 9.0], "f4"), np.float32(1e20)).tolist()
        [1.125, 1.0000000200408773e+20, 9.0]
        >>> Rounding(places=1)(np.array([0.1234]), None).tolist()
        [0.125]
        """
        values = np.asarray(values)
        if values.dtype.kind != "f" or not values.size:
            return values
        rounded = self._to_bits(values) if self.bits is not None else self._to_places(values)
        fill = FILL if fill is None else fill
        return np.where((values == values.dtype.type(fill)) | np.isnan(values), values, rounded)

    def _to_bits(self, values: Any) -> Any:
        # netCDF-C's BitRound: half of the last bit that stays is added, and what is below it is cut.
        whole = {4: np.uint32, 8: np.uint64}[values.dtype.itemsize]
        mantissa = {4: 23, 8: 52}[values.dtype.itemsize]
        cut = mantissa - min(self.bits or 0, mantissa)
        if cut == 0:
            return values
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("=")).reshape(values.shape)
        words = native.view(whole) + whole(1 << (cut - 1))
        words &= whole(~((1 << cut) - 1) & np.iinfo(whole).max)
        return words.view(native.dtype)

    def _to_places(self, values: Any) -> Any:
        # netCDF4-python's: to a multiple of the power of two that has these places.
        exponent = -math.log10(10.0 ** -(self.places or 0))
        exponent = math.ceil(exponent) if exponent > 0 else math.floor(exponent)
        scale = np.float64(2.0 ** math.ceil(math.log2(10.0**exponent)))
        with np.errstate(over="ignore", invalid="ignore"):
            return (np.around(scale * values) / scale).astype(values.dtype)


def _whole(value: Any, key: str, name: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"variable {name!r}: {key} is a whole number, and not {value!r}") from None


def rounding_of_encoding(keys: dict[str, Any], name: Any, kind: np.dtype[Any]) -> Rounding | None:
    """How the keys of an encoding say that values are rounded; ``None`` if they do not.

    >>> rounding_of_encoding({"significant_digits": 7, "quantize_mode": "BitRound"}, "t", np.dtype("f4"))
    Rounding(bits=7, places=None)
    """
    bits, places = keys.get("significant_digits"), keys.get("least_significant_digit")
    mode = keys.get("quantize_mode")
    if bits is None and places is None:
        if mode is not None and "significant_digits" not in keys:
            raise ValueError(f"variable {name!r}: quantize_mode needs significant_digits, which says how much stays")
        return None
    if bits is not None and places is not None:
        raise ValueError(f"variable {name!r}: significant_digits and least_significant_digit both round: choose one")
    if kind.kind != "f":
        raise ValueError(f"variable {name!r}: only floating-point numbers are rounded, and it has {kind}")
    if places is not None:
        return Rounding(places=_whole(places, "least_significant_digit", name))
    bits = _whole(bits, "significant_digits", name)
    if bits == 0:
        return None
    mode = "BitGroom" if mode is None else mode
    if mode != "BitRound":
        raise ValueError(
            f"variable {name!r}: quantize_mode {mode!r}{' (the default of netCDF4)' if keys.get('quantize_mode') is None else ''} "
            "is not written: use quantize_mode='BitRound', whose significant_digits are bits of the mantissa "
            "(3 decimal digits are about 10 bits), or filters=[('bitround', bits), ...]"
        )
    most = 23 if kind.itemsize == 4 else 52
    if not 1 <= bits <= most:
        raise ValueError(f"variable {name!r}: {kind} has 1 to {most} bits to keep, and not significant_digits={bits}")
    return Rounding(bits=bits)


def rounding_of_attributes(attributes: Any) -> Rounding | None:
    """How the values of a variable that is there were rounded, so that what is appended is rounded alike."""
    for key, field in ((BITS, "bits"), (PLACES, "places")):
        value = attributes.get(key)
        if value is not None and np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iu":
            return Rounding(**{field: int(value)})
    return None
