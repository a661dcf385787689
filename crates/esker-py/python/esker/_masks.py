"""Fill values as masks, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._variable import Variable

__all__ = ["filled", "masked"]


def masked(variable: Variable, array: Any) -> np.ma.MaskedArray:
    """The array with a mask where it is the fill value or ``missing_value``.

    Without an attribute ``_FillValue`` the type's default is masked too, but not for bytes: all 256
    of their values are data (netCDF's own rule).
    """
    data = np.asarray(array)
    if data.dtype.kind == "S":
        return np.ma.MaskedArray(data)
    attrs = variable.attrs
    missing: list[Any] = []
    if "_FillValue" in attrs or data.dtype.itemsize > 1:
        missing.append(variable.fill_value)
    if "missing_value" in attrs:
        missing.extend(np.atleast_1d(attrs["missing_value"]).tolist())
    mask: Any = np.ma.nomask
    for value in missing:
        try:
            number = data.dtype.type(value)
        except (TypeError, ValueError, OverflowError):
            continue  # text, or a number that the type does not have
        here = np.isnan(data) if number != number else data == number
        mask = here if mask is np.ma.nomask else mask | here
    fill = variable.fill_value
    return np.ma.MaskedArray(data, mask=mask, fill_value=fill)


def filled(variable: Variable, array: np.ma.MaskedArray) -> np.ndarray:
    """The array with the variable's fill value where it is masked."""
    if not np.ma.is_masked(array):
        return np.asarray(array.data)
    fill = variable.fill_value
    data = array.data
    if not np.can_cast(variable.dtype, data.dtype):
        data = data.astype(np.promote_types(data.dtype, variable.dtype))
    return np.where(np.ma.getmaskarray(array), data.dtype.type(fill), data)
