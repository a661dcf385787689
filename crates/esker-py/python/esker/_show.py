"""How datasets and variables look, as text and in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._variable import Variable

#: Lines of variables or attributes before the rest is counted.
MOST = 40


def _shown(text: str) -> str:
    """A line of text from a file, without what a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _short(value: Any, width: int = 70) -> str:
    text = value if isinstance(value, str) else str(value)
    text = _shown(" ".join(text.split()))
    return text if len(text) <= width else text[: width - 1] + "…"


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _label(attrs: Any) -> str:
    """What a variable is about, from the attributes that say so."""
    names = set(attrs)
    title = next((str(attrs[name]) for name in ("long_name", "standard_name") if name in names), "")
    units = f"[{attrs['units']}]" if "units" in names else ""
    return _short(" ".join(part for part in (title, units) if part), 48)


def _kind(dataset: Dataset) -> str:
    kind = f"{dataset.format}, log container" if dataset.layout == "log" else dataset.format
    use = "open for writing" if dataset.writable else "open for reading"
    ranks = f", rank {dataset.rank} of {dataset.size}" if dataset.size > 1 else ""
    return f"{kind}, {use}{ranks}"


def _dims(dataset: Dataset) -> list[str]:
    return [f"{name} {size}{' (unlimited)' if unlimited else ''}" for name, size, unlimited in dataset._handle.dimensions()]


def dataset_text(dataset: Dataset) -> str:
    """The text of a dataset: dimensions, variables, attributes."""
    if dataset.closed:
        return f"<esker.Dataset {dataset.path!r} (closed)>"
    lines = [f"<esker.Dataset {dataset.path!r} ({_kind(dataset)})>"]
    if dims := _dims(dataset):
        lines.append(_shown("Dimensions: " + ", ".join(dims)))
    overview = dataset._handle.overview()
    if overview:
        lines.append("Variables:")
    rows = [(kind, _shown(f"{name}({', '.join(dims)})"), name) for name, kind, dims, _ in overview[:MOST]]
    wide = max((len(kind) for kind, _, _ in rows), default=0)
    long = min(max((len(text) for _, text, _ in rows), default=0), 40)
    for kind, text, name in rows:
        lines.append(f"  {kind:<{wide}} {text:<{long}}  {_label(dataset[name].attrs)}".rstrip())
    if len(overview) > MOST:
        lines.append(f"  … and {len(overview) - MOST} more")
    lines += _attribute_lines("Attributes:", dataset.attrs)
    return "\n".join(lines)


def _attribute_lines(title: str, attrs: Any) -> list[str]:
    names = list(attrs)
    lines = [title] if names else []
    lines += [f"  {_shown(name)}: {_short(attrs[name])}" for name in names[:MOST]]
    if len(names) > MOST:
        lines.append(f"  … and {len(names) - MOST} more")
    return lines


def variable_text(variable: Variable) -> str:
    """The text of a variable: type, shape, attributes."""
    shape = _shown(", ".join(f"{name}: {size}" for name, size in zip(variable.dims, variable.shape)))
    stored = "".join(f", {word} {value}" for word, value in _storage(variable))
    lines = [f"<esker.Variable {variable.name!r} ({shape}) {variable.dtype}, {_bytes(variable.nbytes)}{stored}>"]
    return "\n".join(lines + _attribute_lines("Attributes:", _told(variable)))


def _storage(variable: Variable) -> list[tuple[str, str]]:
    """How it is stored, if not contiguously and as it is."""
    chunks, filters = variable.chunks, variable.filters
    found = [("chunks", "×".join(map(str, chunks)))] if chunks else []
    return found + ([("filters", filters)] if filters else [])


def _told(variable: Variable) -> dict[str, Any]:
    """Its attributes without those that say how it is stored."""
    hidden = ("__chunk_shape", "__filters") if variable.chunks or variable.filters else ()
    return {name: value for name, value in variable.attrs.items() if name not in hidden}


_STYLE = (
    "<style>.esker{font-family:system-ui,sans-serif;font-size:13px}"
    ".esker table{border-collapse:collapse}.esker td{text-align:left;padding:1px 10px 1px 0;vertical-align:top}"
    ".esker .k{opacity:.65;font-family:monospace}.esker summary{cursor:pointer;font-weight:600;padding:3px 0}</style>"
)


def _table(rows: list[tuple[str, ...]]) -> str:
    cells = ("".join(f"<td{' class=k' if place == 0 else ''}>{escape(cell)}</td>" for place, cell in enumerate(row)) for row in rows)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def _section(title: str, rows: list[tuple[str, ...]], is_open: bool) -> str:
    if not rows:
        return ""
    return f"<details{' open' if is_open else ''}><summary>{escape(title)} ({len(rows)})</summary>{_table(rows)}</details>"


def dataset_html(dataset: Dataset) -> str:
    """The dataset in a notebook."""
    if dataset.closed:
        return f"<pre>{escape(dataset_text(dataset))}</pre>"
    variables = [
        (kind, name, f"({', '.join(dims)})", " × ".join(map(str, shape)), _label(dataset[name].attrs))
        for name, kind, dims, shape in dataset._handle.overview()
    ]
    dims = [(name, f"{size}{' (unlimited)' if unlimited else ''}") for name, size, unlimited in dataset._handle.dimensions()]
    attrs = [(name, _short(value, 200)) for name, value in dataset.attrs.items()]
    return (
        f"{_STYLE}<div class=esker><b>esker.Dataset</b> {escape(dataset.path)} <span class=k>{escape(_kind(dataset))}</span>"
        + _section("Dimensions", dims, True)
        + _section("Variables", variables, len(variables) <= MOST)
        + _section("Attributes", attrs, False)
        + "</div>"
    )


def variable_html(variable: Variable) -> str:
    """The variable in a notebook."""
    rows = [("type", str(variable.dtype)), ("size", _bytes(variable.nbytes))]
    rows += [("dimension", f"{name}: {size}") for name, size in zip(variable.dims, variable.shape)]
    rows += _storage(variable)
    attrs = [(name, _short(value, 200)) for name, value in _told(variable).items()]
    return f"{_STYLE}<div class=esker><b>esker.Variable</b> {escape(variable.name)}{_table(rows)}{_section('Attributes', attrs, True)}</div>"
