#!/usr/bin/env python3
"""A second decoder of sz chunks that follows the page in docs/format/filters.md, slow and plain.

    decoder.py < chunks > elements

Each chunk is preceded by six little-endian u32: the size of an element, the four lengths of the folded
shape, slowest first, and the length of the chunk. The test `second_decoder` runs it.
"""
import struct
import sys

import numcodecs
import numpy as np


def decode(data, size, shape):
    """The elements of a chunk, big-endian."""
    real = {4: np.float32, 8: np.float64}[size]
    at = 0

    def take(count):
        nonlocal at
        part = data[at:at + count]
        assert len(part) == count
        at += count
        return part

    def byte():
        return take(1)[0]

    def varint():
        value = shift = 0
        while True:
            b = byte()
            value |= (b & 127) << shift
            shift += 7
            if b < 128:
                return value

    def element():
        return np.frombuffer(take(size), f">f{size}")[0].astype(real)

    total = int(np.prod(shape))
    stride = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1]

    # Special values
    k = varint()
    special = {}
    if k:
        patterns = [take(size) for _ in range(k)]
        length = varint()
        tokens = numcodecs.Zstd().decode(take(varint()))
        assert len(tokens) == length
        place, kind, classes = 0, 0, []
        while len(classes) < total:
            token = shift = 0
            while True:
                b = tokens[place]
                place += 1
                token |= (b & 127) << shift
                shift += 7
                if b < 128:
                    break
            classes += [kind] * (token // (k + 1))
            kind = (kind + 1 + token % (k + 1)) % (k + 2)
        for i, kind in enumerate(classes):
            if kind:
                special[i] = patterns[kind - 1] if kind <= k else take(size)

    values = np.zeros(total, real)
    form = byte()
    if form == 0:
        values[:] = element()
    else:
        bound = struct.unpack(">d", take(8))[0]
        r, m = byte() / 8, byte() / 8
        order = [8, 4, 2, 1, 12, 10, 9, 6, 5, 3, 14, 13, 11, 7, 15]
        dims_of = lambda g: [d for d in range(4) if g >> d & 1]
        has = lambda g, s: all(s < shape[d] for d in dims_of(g))
        rules = {}
        for level in (1, 2, 3):
            for g in order:
                if has(g, 1 << (level - 1)):
                    cubic = byte()
                    dims = dims_of(g)
                    shares = [byte() for _ in dims] if len(dims) > 1 else [1]
                    rules[level, g] = cubic, dict(zip(dims, shares))
        literals = iter([element() for _ in range(varint())])

        count = byte()
        table_of = list(take(48))
        tables = []
        for _ in range(count):
            used, frequencies = byte(), []
            while len(frequencies) < used:
                f = varint()
                frequencies.append(f)
                if f == 0:
                    frequencies += [0] * varint()
            assert sum(frequencies) == 4096
            tables.append([(t, f, sum(frequencies[:t])) for t, f in enumerate(frequencies) for _ in range(f)])
        extra = int.from_bytes(take(varint()), "little")
        state = struct.unpack("<Q", take(8))[0]

        def code(context):
            """The next code, or None for a literal."""
            nonlocal state, extra
            slot = state % 4096
            token, frequency, start = tables[table_of[context]][slot]
            state = frequency * (state // 4096) + slot - start
            if state < 1 << 31:
                state = state << 32 | struct.unpack("<I", take(4))[0]
            if token == 63:
                return None
            value = token
            if token >= 16:
                e = (token - 16) // 2 + 4
                value = 1 << e | (token & 1) << (e - 1) | extra & ((1 << (e - 1)) - 1)
                extra >>= e - 1
            return -(value + 1) // 2 if value & 1 else value // 2

        sizes = [0] * total

        def visit(i, predicted, context, level):
            divisor = 1.0
            for _ in range(level - 1):
                divisor *= r
                if divisor >= m:
                    divisor = m
                    break
            step = 2 * (bound / divisor)
            if i in special:
                value = real(predicted)
                values[i] = value if np.isfinite(value) else 0
                return
            c = code(context)
            if c is None:
                values[i], sizes[i] = next(literals), 64
            else:
                values[i], sizes[i] = real(predicted + c * step), min(abs(c), 255)

        def along(d, x, s, cubic, i):
            """The neighbours in a dimension: (index, weight), left to right."""
            u = stride[d] * s
            left3, right3 = x >= 3 * s, x + 3 * s < shape[d]
            if x + s >= shape[d]:
                return [(i - 3 * u, -0.5), (i - u, 1.5)] if left3 else [(i - u, 1.0)]
            if cubic and left3 and right3:
                return [(i - 3 * u, -1 / 16), (i - u, 9 / 16), (i + u, 9 / 16), (i + 3 * u, -1 / 16)]
            if cubic and left3:
                return [(i - 3 * u, -1 / 8), (i - u, 6 / 8), (i + u, 3 / 8)]
            if cubic and right3:
                return [(i - u, 3 / 8), (i + u, 6 / 8), (i + 3 * u, -1 / 8)]
            return [(i - u, 0.5), (i + u, 0.5)]

        levels = 0
        while 1 << levels < max(shape):
            levels += 1
        visit(0, 0.0, 47, max(levels, 1))
        for level in range(levels, 0, -1):
            s = 1 << (level - 1)
            band = min(level, 3)
            for g in order:
                if not has(g, s):
                    continue
                cubic, shares = rules[band, g]
                first = [s if g >> d & 1 else 0 for d in range(4)]
                slowest = dims_of(g)[0]
                for point in np.ndindex(*[len(range(first[d], shape[d], 2 * s)) for d in range(4)]):
                    x = [first[d] + 2 * s * point[d] for d in range(4)]
                    i = sum(x[d] * stride[d] for d in range(4))
                    used = [d for d in shares if shares[d]]
                    inside = [d for d in used if x[d] + s < shape[d]]
                    used = inside or used
                    whole = sum(shares[d] for d in used)
                    predicted = 0.0
                    for d in used:
                        for j, weight in along(d, x[d], s, cubic, i):
                            predicted += float(values[j]) * (weight * (shares[d] / whole))
                    last = sizes[i - 2 * s] if point[3] else 0
                    above = last
                    for d in (2, 1, 0):
                        if point[d]:
                            above = sizes[i - 2 * s * stride[d]]
                            break
                    u = stride[slowest] * s
                    left = sizes[i - u]
                    right = sizes[i + u] if x[slowest] + s < shape[slowest] else left
                    n = 2 * (last + above) + left + right
                    c = n
                    if n >= 4:
                        e = n.bit_length() - 1
                        c = min(4 + 2 * (e - 2) + (n >> (e - 1) & 1), 15)
                    visit(i, predicted, 16 * (band - 1) + c, level)
        assert state == 1 << 31 and next(literals, None) is None
    assert at == len(data)
    out = bytearray(values.astype(f">f{size}").tobytes())
    for i, pattern in special.items():
        out[i * size:(i + 1) * size] = pattern
    return bytes(out)


while head := sys.stdin.buffer.read(24):
    size, *shape, length = struct.unpack("<6I", head)
    sys.stdout.buffer.write(decode(sys.stdin.buffer.read(length), size, shape))
