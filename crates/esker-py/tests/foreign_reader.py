"""A reader of containers by somebody who has the pages docs/format and nothing of Esker.

What is read here, and how, is in container.md, history.md, log.md and filters.md; the classic header is that of netCDF's own
specification. Everything is read with its checksum. What a page does not have is an error where it could change a value.
"""

import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import google_crc32c
import numpy as np
from numcodecs import LZ4, Zstd

PIECE = 16 << 10
#: Facts of a dataset.
DEFINITIONS, RECORDS, SESSION, STRETCH = 16, 17, 18, 19
EXPIRED = 3
#: The object that sections of logs are data of.
SECTIONS = 0
#: Types of the classic format, by their codes, and what is where nothing was written.
TYPES = {1: ">i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: ">u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
FILLS = {
    1: -127, 2: b"\0", 3: -32767, 4: -2147483647, 5: 9.9692099683868690e36, 6: 9.9692099683868690e36,
    7: 255, 8: 65535, 9: 4294967295, 10: -9223372036854775806, 11: 18446744073709551614,
}  # fmt: skip


class Damaged(Exception):
    """Something is not as the pages say; the object's name comes first."""


class Unknown(Exception):
    """Something that the pages do not have, where it may change values."""


def crc(*parts):
    value = 0
    for part in parts:
        value = google_crc32c.extend(value, bytes(part))
    return value


class Bytes:
    """Bytes that are read from their beginning."""

    def __init__(self, name, data):
        self.name, self.data, self.at = name, memoryview(data), 0

    def __bool__(self):
        return self.at < len(self.data)

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Damaged(f"{self.name}: {count} bytes are wanted at {self.at} of {len(self.data)}")
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def fixed(self, count, order="little", signed=False):
        return int.from_bytes(self.take(count), order, signed=signed)

    def byte(self):
        return self.fixed(1)

    def number(self):
        value = 0
        for digit in range(10):
            byte = self.byte()
            value |= (byte & 0x7F) << 7 * digit
            if byte < 0x80:
                return value
        raise Damaged(f"{self.name}: a number of more than ten bytes before {self.at}")

    def zigzag(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def text(self):
        return self.take(self.number())


# ---- history.md ----


@dataclass
class Item:
    number: int
    over: int
    space: int | None  # None for data
    name: bytes
    value: bytes | None
    #: Of data: the object, its records and its elements.
    box: tuple[int, range, range] | None = None


def items(name, body):
    """The items of a block's body, or of a decision."""
    rest, found, number = Bytes(name, body), [], 0
    object_, record, first, span = 0, 0, 0, 0
    while rest:
        flags = rest.byte()
        if flags & ~7:
            raise Damaged(f"{name}: an item with flags {flags:#x}")
        number += rest.zigzag()
        over = number - rest.number()
        space, key, box = None, b"", None
        if flags & 1:
            object_, record = object_ + rest.zigzag(), record + rest.zigzag()
            count, step = (rest.number(), rest.number()) if flags & 4 else (1, 1)
            first, span = first + rest.zigzag(), span + rest.zigzag()
            box = (object_, range(record, record + count * step, step), range(first, first + span))
        else:
            space, key = rest.byte(), rest.text()
        found.append(Item(number, over, space, key, None if flags & 2 else rest.text(), box))
    return found


@dataclass
class Level:
    id: bytes
    bytes: int
    items: int
    made: int


@dataclass
class Decision:
    number: int
    kind: int
    durable: bool
    time: int
    message: str
    sum: int  # of all its bytes
    parent: tuple[str, int, int] | None = None
    levels: list[Level] = field(default_factory=list)
    tail: list[int] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)


def decision(path, branch, number):
    data = path.read_bytes()
    if len(data) < 8 or crc(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise Damaged(f"{path}: its checksum is another")
    rest = Bytes(path, data[:-4])
    if rest.take(4) != b"ESKD" or rest.fixed(4) != 1:
        raise Damaged(f"{path}: not a decision of format 1")
    kind = rest.byte()
    rest.take(16)  # the write id
    if (rest.number(), rest.text().decode()) != (number, branch):
        raise Damaged(f"{path}: the decision on another number")
    durable, time, message = rest.byte(), rest.fixed(8, signed=True), rest.text().decode()
    found = Decision(number, kind, bool(durable), time, message, crc(data))
    if kind == 1:
        parent = rest.number()
        if parent:
            found.parent = (rest.text().decode(), parent, rest.fixed(4))
        for _ in range(rest.number()):
            id_, length, count = rest.take(16), rest.number(), rest.number()
            rest.number(), rest.number()  # the numbers that it has items of
            found.levels.append(Level(id_, length, count, rest.number()))
        before = number
        for _ in range(rest.number()):
            before -= rest.number()
            found.tail.append(before)
        for _ in range(rest.number()):
            rest.take(16)  # a run that is retired
        found.items = items(path, rest.text())
    elif kind not in (2, 3):
        raise Damaged(f"{path}: a decision of kind {kind}")
    if rest:
        raise Damaged(f"{path}: {len(rest.data) - rest.at} bytes too many")
    return found


def run(path, level):
    """The items of a run, in order."""
    data = path.read_bytes()
    if len(data) != level.bytes or data[:24] != b"ESKR" + (1).to_bytes(4, "little") + level.id:
        raise Damaged(f"{path}: not the run that a decision names")
    length, total, magic = int.from_bytes(data[-16:-8], "little"), data[-8:-4], data[-4:]
    footer = data[len(data) - 16 - length : -16]
    sealed = crc(level.id, b"\xff" * 8, footer)
    if magic != b"ESKR" or sealed != int.from_bytes(total, "little"):
        raise Damaged(f"{path}: the checksum of its footer is another")
    rest, found, at = Bytes(path, footer), [], 24
    count, blocks = rest.number(), rest.number()
    for block in range(blocks):
        size = rest.number()
        if rest.byte() == 0:
            rest.byte(), rest.text()
        else:
            for _ in range(7):
                rest.number()
        body = data[at + 4 : at + size]
        if crc(level.id, block.to_bytes(8, "little"), body) != int.from_bytes(data[at : at + 4], "little"):
            raise Damaged(f"{path}: the checksum of block {block} is another")
        found += items(path, body)
        at += size
    if rest or at != len(data) - 16 - length or not len(found) == count == level.items:
        raise Damaged(f"{path}: its footer does not fit it")
    return found


# ---- the classic header, as netCDF's specification has it ----


@dataclass
class Variable:
    name: str
    dims: list[int]
    attributes: dict
    type: int


@dataclass
class Header:
    dims: list[tuple[str, int]]
    attributes: dict
    variables: list[Variable]


def header(name, data):
    rest = Bytes(name, data)
    if rest.take(3) != b"CDF":
        raise Damaged(f"{name}: no classic header")
    version = rest.byte()
    wide, begin = (8 if version == 5 else 4), (4 if version == 1 else 8)

    def count():
        return rest.fixed(wide, "big")

    def text():
        length = count()
        found = rest.take(length)
        rest.take(-length % 4)
        return found.decode()

    def attributes():
        rest.fixed(4), (number := count())
        found = {}
        for _ in range(number):
            key, kind, length = text(), rest.fixed(4, "big"), count()
            dtype = np.dtype(TYPES[kind])
            found[key] = np.frombuffer(rest.take(length * dtype.itemsize), dtype)
            rest.take(-length * dtype.itemsize % 4)
        return found

    if count() != 0:
        raise Damaged(f"{name}: definitions with a number of records")
    rest.fixed(4), (number := count())
    dims = [(text(), count()) for _ in range(number)]
    of_all = attributes()
    rest.fixed(4), (number := count())
    variables = []
    for _ in range(number):
        key = text()
        ids = [count() for _ in range(count())]
        own, kind = attributes(), rest.fixed(4, "big")
        count(), rest.fixed(begin, "big")
        variables.append(Variable(key, ids, own, kind))
    return Header(dims, of_all, variables)


# ---- log.md ----


@dataclass
class Entry:
    variable: int
    records: range
    first: int
    footprint: int  # its number
    width: int
    little: bool
    filtered: bool
    payload: tuple[int, int]  # place and length in the data log
    sums: list[int] | None
    epoch: int


def numbers(rest, total, one):
    """A list in which the last of some numbers may come again."""
    found = []
    while len(found) < total:
        found += [one() for _ in range(rest.number())]
        found += [found[-1]] * rest.number()
    if len(found) != total:
        raise Damaged(f"{rest.name}: a list of {len(found)} numbers where there are {total}")
    return found


def footprint(name, data):
    """The elements of a definition, relative to the first, in the order of the payload."""
    rest = Bytes(name, data)
    elements, span, kind = rest.number(), rest.number(), rest.byte()
    if kind == 0:
        length, levels = rest.number(), rest.number()
        places = np.zeros(1, "i8")
        for _ in range(levels):
            count, step = rest.number(), rest.number()
            places = (places[:, None] + step * np.arange(count)).ravel()
        places = (places[:, None] + np.arange(length)).ravel()
    elif kind in (1, 2):
        if kind == 2:
            length = rest.number()
            rest = Bytes(name, Zstd().decode(rest.take(len(rest.data) - rest.at)))
            if len(rest.data) != length:
                raise Damaged(f"{name}: a list of {len(rest.data)} bytes where there are {length}")
        runs = rest.number()
        gaps = numbers(rest, runs, rest.zigzag)
        lengths = numbers(rest, runs, rest.number)
        parts, end = [], 0
        for gap, length in zip(gaps, lengths):
            parts.append(np.arange(end + gap, end + gap + length))
            end += gap + length
        places = np.concatenate(parts)
    else:
        raise Unknown(f"{name}: a footprint of kind {kind}")
    if rest or len(places) != elements or (elements and places.max() - places.min() + 1 != span):
        raise Damaged(f"{name}: a footprint that does not fit its own numbers")
    return places


def behind_head(name, data, identity, rank):
    """Where the first frame of a metadata log is."""
    rest = Bytes(name, data)
    if rest.take(4) != b"ESKL" or rest.fixed(4) != 1:
        raise Damaged(f"{name}: not a log of format 1")
    if (rest.fixed(8), rest.fixed(4)) != (identity, rank):
        raise Damaged(f"{name}: the log of another session or rank")
    rest.fixed(4), rest.take(rest.fixed(4))
    if crc(data[: rest.at]) != rest.fixed(4):
        raise Damaged(f"{name}: the checksum of its head is another")
    return rest.at


def frames(name, data, begin):
    """The bodies of the frames from a byte on, each with the byte at which it ends."""
    rest = Bytes(name, data)
    rest.at = begin
    while rest:
        at = rest.at
        magic, length, sum_ = rest.take(4), rest.fixed(4), rest.fixed(4)
        if magic != b"ESKF" or crc(data[at : at + 12]) != rest.fixed(4):
            raise Damaged(f"{name}: no frame at byte {at}")
        body = rest.take(length)
        if crc(body) != sum_:
            raise Damaged(f"{name}: the checksum of the frame at byte {at} is another")
        yield rest.at, Bytes(f"{name}, frame at byte {at}", body)


def entries(name, data, begin):
    """The entries from a byte of a metadata log on, each with the byte at which its frame ends, and the footprints that they refer to."""
    footprints, found = {}, []
    for end, frame in frames(name, data, begin):
        kind = frame.byte()
        if kind == 2:
            # What entries before it refer to, though it was defined before they can be read from.
            while frame:
                number, at, length, elements, span, sum_ = (*(frame.number() for _ in range(5)), frame.fixed(4))
                definition = data[at : at + length]
                if at + length > end or crc(definition) != sum_:
                    raise Damaged(f"{frame.name}: footprint {number} is not at byte {at}")
                places = footprint(frame.name, definition)
                if len(places) != elements or places.max() - places.min() + 1 != span:
                    raise Damaged(f"{frame.name}: footprint {number} has other elements")
                if not np.array_equal(footprints.setdefault(number, places), places):
                    raise Damaged(f"{frame.name}: footprint {number} is another than that of its number")
            continue
        if kind != 0:
            raise Unknown(f"{frame.name}: a frame of kind {kind}")
        at, new = frame.number(), frame.number()
        variable = epoch = record = first = 0
        while frame:
            flags = frame.byte()
            if flags >> 7:
                raise Unknown(f"{frame.name}: an entry with flags {flags:#x}")
            variable += frame.zigzag()
            epoch += frame.zigzag()
            record += frame.zigzag()
            count, step = (frame.number(), frame.number()) if flags & 8 else (1, 1)
            first += frame.zigzag()
            if flags & 16:
                number = new
                footprints[number] = footprint(frame.name, frame.text())
                new += 1
            else:
                number = new - frame.number()
            size = frame.number()
            sums = None if flags & 64 else [frame.fixed(4) for _ in range(-(-size // PIECE))]
            records = range(record, record + count * step, step)
            width, little, filtered = 1 << (flags & 3), bool(flags & 4), bool(flags & 32)
            entry = Entry(variable, records, first, number, width, little, filtered, (at, size), sums, epoch)
            found.append((end, entry))
            at += size
    missing = {entry.footprint for _, entry in found} - set(footprints)
    if missing:
        raise Damaged(f"{name}: footprints {sorted(missing)} are not in the frames from byte {begin} on")
    return found, footprints


def lane(data, block, lane, lanes):
    """One of the files that a file looks like."""
    if lanes == 1:
        return data
    pieces = [data[at : at + block] for at in range(lane * block, len(data), lanes * block)]
    return b"".join(pieces)


# ---- filters.md ----


def unfiltered(name, payload, text, dtype, elements):
    """The elements of a payload that went through filters, in external form."""
    mask, data = int.from_bytes(payload[:2], "little"), payload[2:]
    used = [word.split(",")[0] for place, word in enumerate(text.split()) if not mask >> place & 1]
    width = 4 if "f32" in used else dtype.itemsize
    for filter_ in reversed(used):
        if filter_ == "deflate":
            data = zlib.decompress(data)
        elif filter_ == "shuffle":
            data = np.frombuffer(data, "u1").reshape(width, -1).T.tobytes()
        elif filter_ == "zstd":
            data = Zstd().decode(data)
        elif filter_ == "lz4":
            data = LZ4().decode(data)
        elif filter_ == "crc32c":
            data, total = data[:-4], data[-4:]
            if crc(data) != int.from_bytes(total, "little"):
                raise Damaged(f"{name}: the checksum behind its values is another")
        elif filter_ == "f32":
            data = np.frombuffer(data, ">f4").astype(">f8").tobytes()
        elif filter_ != "bitround":
            raise Unknown(f"{name}: the filter {filter_}, which this reader has not")
    if len(data) != elements * dtype.itemsize:
        raise Damaged(f"{name}: {len(data)} bytes for {elements} elements")
    return np.frombuffer(data, dtype)


# ---- container.md ----


def inside(records, box):
    """Whether all records are in a box, which may be that of all records that there can be."""
    return box.start <= records[0] and records[-1] < box.stop


@dataclass
class Section:
    """Frames of a log that can be read without what is before them."""

    log: int
    begin: int
    data_end: int
    number: int  # of its first entry in the log
    cuts: list[tuple[int, tuple[int, int]]]  # where they end, and over what they lie
    records: range
    variables: range

    @property
    def end(self):
        return self.cuts[-1][0]


@dataclass
class Session:
    name: str
    identity: int
    revision: int
    blocks: tuple[int, int]
    logs: list[tuple[int, int, int, int]]  # rank, file, lane, lanes


class Version:
    """A version of the dataset in a container."""

    def __init__(self, container, facts, data, others):
        self.container, self.facts, self.data, self.others = container, facts, data, others
        where = f"{container.path}, definitions"
        self.header = header(where, self.only(DEFINITIONS))
        self.records = Bytes(where, self.only(RECORDS)).number()

    def only(self, space):
        return self.facts[space, b""].value

    def variables(self):
        return [variable.name for variable in self.header.variables]

    def shape(self, variable):
        lengths = (self.header.dims[dim][1] for dim in variable.dims)
        return tuple(length or self.records for length in lengths)

    def is_record(self, variable):
        return bool(variable.dims) and self.header.dims[variable.dims[0]][1] == 0

    def sessions(self):
        for (space, name), item in self.facts.items():
            if space != SESSION:
                continue
            rest = Bytes(f"{self.container.path}, session {name.hex()}", item.value)
            begun, revision, meta, data, count = (rest.number() for _ in range(5))
            if rest.byte() == 0:
                logs = [(log, log, 0, 1) for log in range(count)]
            else:
                logs = [tuple(rest.number() for _ in range(4)) for _ in range(count)]
            identity = int.from_bytes(name, "big")
            yield Session(f"{begun}-{name.hex()}", identity, revision, (meta, data), logs)

    def cuts(self, session):
        """Of each log of a session: where its stretches end, and over what each lies."""
        cuts = [[] for _ in session.logs]
        key = session.identity.to_bytes(8, "big")
        stretches = [(name, item) for (space, name), item in self.facts.items() if space == STRETCH]
        for name, item in sorted(stretches, key=lambda pair: pair[0]):
            if name[:8] != key:
                continue
            rest = Bytes(f"{self.container.path}, stretch {name.hex()}", item.value)
            came, over, count = rest.number(), rest.number(), rest.number()
            place = (over, came) if came else (item.over, item.number)
            log = -1
            for _ in range(count):
                log += 1 + rest.number()
                cuts[log].append((rest.number(), rest.number(), place))
        return cuts

    def sections(self, session):
        """The sections of a session's logs."""
        found = {}
        for item in self.data:
            _, records, variables = item.box
            rest = Bytes(f"{self.container.path}, a section", item.value)
            if rest.fixed(8, "big") != session.identity:
                continue
            log, begin, data_end, number = (rest.number() for _ in range(4))
            cuts, end = [], begin
            while rest:
                end += rest.number()
                came, over = rest.number(), rest.number()
                cuts.append((end, (over, came) if came else (item.over, item.number)))
            # The first of two with one beginning counts.
            found.setdefault((log, begin), Section(log, begin, data_end, number, cuts, records, variables))
        return [found[key] for key in sorted(found)]

    def log(self, session, number):
        """The name, the metadata and the payloads of a log, and where its frames begin; None if the version has none of it."""
        cuts = self.cuts(session)[number]
        if not cuts:
            return None
        rank, file, lane_, lanes = session.logs[number]
        revision = f".{session.revision}" if session.revision else ""
        meta, data = (
            self.container.segment(f"{session.name}.{file}{which}", block, lane_, lanes, cuts[-1][end])
            for which, block, end in ((f"{revision}.meta", session.blocks[0], 0), (".data", session.blocks[1], 1))
        )
        name = f"{session.name}.{file}{revision}.meta"
        return name, meta, data, behind_head(name, meta, session.identity, rank)

    def require_known(self):
        if self.others:
            raise Unknown(f"{self.container.path}: {self.others}: values may be where this reader does not look")

    def entries(self):
        """All entries: what they lie over, the entry, its elements and its data log; the last lies over all others."""
        self.require_known()
        found = []
        for session in self.sessions():
            for number, cuts in enumerate(self.cuts(session)):
                if not cuts:
                    continue
                name, meta, data, begin = self.log(session, number)
                those, footprints = entries(name, meta, begin)
                for sequence, (end, entry) in enumerate(those):
                    place = next(place for cut, _, place in cuts if end <= cut)
                    key = (place, entry.epoch, session.logs[number][0], sequence)
                    found.append((key, entry, entry.first + footprints[entry.footprint], data))
        return sorted(found, key=lambda one: one[0])

    def entries_of_sections(self, variable, records):
        """The same, of those sections alone that may have these records of a variable; other entries may be among them."""
        self.require_known()
        found = []
        for session in self.sessions():
            for section in self.sections(session):
                meets = section.records.start < records.stop and records.start < section.records.stop
                if variable not in section.variables or not meets:
                    continue
                name, meta, data, begin = self.log(session, section.log)
                those, footprints = entries(name, meta[: section.end], section.begin or begin)
                for sequence, (end, entry) in enumerate(those):
                    if entry.variable not in section.variables or not inside(entry.records, section.records):
                        raise Damaged(f"{name}: an entry that the section at {section.begin} does not tell of")
                    if sum(entry.payload) > section.data_end:
                        raise Damaged(f"{name}: a payload behind the end of the section at {section.begin}")
                    place = next(place for cut, place in section.cuts if end <= cut)
                    key = (place, entry.epoch, session.logs[section.log][0], section.number + sequence)
                    found.append((key, entry, entry.first + footprints[entry.footprint], data))
        return sorted(found, key=lambda one: one[0])

    def are_whole(self):
        """Whether the sections of each log follow each other without a gap, to the end of what the version has of it."""
        for session in self.sessions():
            of_logs = {}
            for section in self.sections(session):
                of_logs.setdefault(section.log, []).append(section)
            for number, cuts in enumerate(self.cuts(session)):
                if not cuts:
                    continue
                _, meta, _, begin = self.log(session, number)
                for section in of_logs.get(number, []):
                    if (section.begin or begin) != begin:
                        return False
                    begin = section.end
                if begin != len(meta):
                    return False
        return True

    def read(self, name):
        """All values of a variable, from all that was ever written."""
        values, rows = self.blank(name)
        self.lay(name, rows, self.entries())
        return values

    def read_by_sections(self, name, record=None):
        """The same from sections that may have it; or one record of it."""
        values, rows = self.blank(name)
        records = range(len(rows)) if record is None else range(record, record + 1)
        self.lay(name, rows, self.entries_of_sections(self.variables().index(name), records))
        return values if record is None else values[record]

    def blank(self, name):
        """A variable in which nothing was written, and as records in a row."""
        variable = self.header.variables[self.variables().index(name)]
        shape, dtype = self.shape(variable), np.dtype(TYPES[variable.type])
        fill = variable.attributes.get("_FillValue", np.array([FILLS[variable.type]], dtype))[0]
        values = np.full(shape, fill, dtype)
        inner = int(np.prod(shape[1:] if self.is_record(variable) else shape))
        return values, values.reshape(self.records if self.is_record(variable) else 1, inner)

    def lay(self, name, rows, found):
        """Lays entries of a variable over each other."""
        number = self.variables().index(name)
        variable, dtype = self.header.variables[number], rows.dtype
        for _, entry, places, data in found:
            if entry.variable != number:
                continue
            at, size = entry.payload
            payload = data[at : at + size]
            where = f"{self.container.path}, {name}, payload at {at}"
            pieces = [payload[begin : begin + PIECE] for begin in range(0, size, PIECE)]
            sums = entry.sums and [crc(piece) for piece in pieces]
            if len(payload) != size or sums != entry.sums:
                raise Damaged(f"{where}: its checksum is another")
            elements = len(entry.records) * len(places)
            if entry.filtered:
                text = variable.attributes["__filters"].tobytes().decode()
                given = unfiltered(where, payload, text, dtype, elements)
            else:
                if size != elements * entry.width or entry.width != dtype.itemsize:
                    raise Damaged(f"{where}: {size} bytes for {elements} elements")
                given = np.frombuffer(payload, dtype.newbyteorder("<" if entry.little else ">"))
            given = given.reshape(len(entry.records), len(places))
            for row, record in zip(given, entry.records):
                # A record that a commit did not count is no record of this version.
                if record < len(rows):
                    rows[record, places] = row


class Container:
    """A container of format 2."""

    def __init__(self, path):
        self.path = Path(path)
        mark = (self.path / "esker.json").read_text()
        known = re.fullmatch(r'\{"esker": "container", "format": 2, "identity": "[0-9a-f]{16}", "promises": 1\}\n', mark)
        if not known:
            raise Unknown(f"{self.path}: {json.loads(mark)} is not the mark of a container of format 2")

    def decision(self, number, branch="main"):
        return decision(self.path / "refs" / branch / f"{number:08}", branch, number)

    def newest(self):
        """The newest number, without a list of the directory."""

        def there(number):
            return (self.path / "refs" / "main" / f"{number:08}").exists()

        low, high = 0, 1
        while there(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if there(middle) else (low, middle)
        return low

    def promises(self):
        """What was promised of each version: its slot, with the checksum of its decision."""
        data = (self.path / "promises").read_bytes()
        if data[:4] != b"ESKP" or crc(data[:60]) != int.from_bytes(data[60:64], "little"):
            raise Damaged(f"{self.path}/promises: the checksum of its head is another")
        found = {}
        for number in range(1, len(data) // 64):
            slot = Bytes(f"{self.path}/promises, version {number}", data[64 * number : 64 * number + 64])
            if not any(slot.data):
                continue
            if crc(slot.data[:60]) != int.from_bytes(slot.data[60:], "little") or slot.fixed(8) != number:
                raise Damaged(f"{slot.name}: its checksum is another")
            found[number] = {"first": slot.fixed(8), "synced": slot.fixed(4) == 2, "decision": slot.fixed(4)}
        return found

    def version(self, number=None):
        """The newest version, or that of a number."""
        number = number or self.newest()
        promises = self.promises()
        found = self.decision(number)
        while found.kind != 1:
            found = self.decision(found.number - 1)
        # Every decision that was promised is the one that is there.
        if found.number in promises and promises[found.number]["decision"] != found.sum:
            raise Damaged(f"{self.path}: the decision on {found.number} is not the one that was promised")
        if found.parent and self.decision(found.parent[1], found.parent[0]).sum != found.parent[2]:
            raise Damaged(f"{self.path}: the parent of {found.number} is not the one that it was made for")
        facts, data, others = {}, [], set()
        parts = [run(self.path / "runs" / self.run_name(level), level) for level in found.levels]
        parts += [self.decision(before).items for before in reversed(found.tail)]
        for item in (item for part in [*parts, found.items] for item in part):
            if item.space is None:
                if item.box[0] == SECTIONS:
                    data.append(item)
                else:
                    others.add(f"it has data of object {item.box[0]}")
                continue
            if item.space >= 16 and item.space not in (DEFINITIONS, RECORDS, SESSION, STRETCH):
                others.add(f"it has facts of space {item.space}")
            if item.value is None:
                facts.pop((item.space, item.name), None)
            else:
                facts[item.space, item.name] = item
        return Version(self, facts, data, sorted(others))

    def versions(self):
        """The numbers that can be opened, with their decisions."""
        newest = self.version()
        expired = [
            range(int.from_bytes(name, "big"), int.from_bytes(item.value, "big") + 1)
            for (space, name), item in newest.facts.items()
            if space == EXPIRED
        ]
        decisions = (self.decision(number) for number in range(1, self.newest() + 1))
        return [
            found for found in decisions if found.kind == 1 and not any(found.number in numbers for numbers in expired)
        ]

    @staticmethod
    def run_name(level):
        return f"{level.made:08}-{level.id[::-1].hex()}"

    def segment(self, name, block, number, lanes, length):
        data = lane((self.path / "segments" / name).read_bytes(), block, number, lanes)
        if len(data) < length:
            raise Damaged(f"{self.path}/segments/{name}: {length} bytes belong to the version, and there are {len(data)}")
        return data[:length]
