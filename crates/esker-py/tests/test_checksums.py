"""Checksums from an array to an array."""

import subprocess
import sys

import esker
import numpy as np
import pytest


@pytest.fixture(params=["cdf5", "log", "chunks"])
def dataset(request, tmp_path):
    layout = {"layout": "log"} if request.param == "log" else {}
    with esker.create(str(tmp_path / "x"), **layout) as ds:
        ds.create_dimension("t")
        ds.create_dimension("x", 100)
        chunks = {"chunks": (1, 30)} if request.param == "chunks" else {}
        ds.create_variable("heat", "f4", ("t", "x"), **chunks)
        yield ds


def bit_by_bit(data):
    """CRC-32C as its polynomial says."""
    sum = 0xFFFFFFFF
    for byte in bytes(data):
        sum ^= byte
        for _ in range(8):
            sum = sum >> 1 ^ (0x82F63B78 if sum & 1 else 0)
    return sum ^ 0xFFFFFFFF


def test_the_checksum_is_that_of_the_dense_array():
    table = np.arange(60, dtype="i2").reshape(6, 10)
    assert esker.crc32c(np.frombuffer(b"123456789", "u1")) == 0xE3069283
    for array in (table, table[:, ::3], table.T, table[0, 0], table[:0], table.astype(">f8"), np.array(["ab", "c"], "S2")):
        assert esker.crc32c(array) == bit_by_bit(np.ascontiguousarray(array).tobytes())


def test_what_has_changed_is_not_written(dataset):
    heat, values = dataset["heat"], np.linspace(270, 290, 100, dtype="f4")
    total = esker.crc32c(values)
    heat.write(0, values, crc32c=total)
    flipped = values.copy()
    flipped.view("u4")[7] ^= 1 << 12
    for write in (heat.write, heat.put):
        with pytest.raises(esker.ChecksumError, match=f"'heat', 0: .*{total:#010x}.*{esker.crc32c(flipped):#010x}"):
            write(0, flipped, crc32c=total)
    dataset.put("heat", 1, values[::-1], crc32c=esker.crc32c(values[::-1]))
    dataset.wait()
    back, same = heat.read(0, crc32c=True)
    assert same == total and (back == values).all()
    back, same = heat.read((0, slice(None, None, 7)), crc32c=True)
    assert same == esker.crc32c(values[::7])
    assert (heat[1] == values[::-1]).all()


def test_the_hint_is_in_force(tmp_path):
    with esker.create(str(tmp_path / "x.nc"), hints={"esker_checksums": "transfer"}) as ds:
        assert ds.hints["esker_checksums"] == "transfer"
    with esker.create(str(tmp_path / "y.nc")) as ds:
        assert ds.hints["esker_checksums"] == "all"


def test_check_reads_all_versions(tmp_path):
    path = tmp_path / "run.esk"
    with esker.create(str(path), layout="log") as ds:
        ds.create_dimension("x", 1000)
        v = ds.create_variable("v", "f8", ("x",))
        for turn in range(3):
            v[:] = np.full(1000, turn)
            ds.sync()
    check = [sys.executable, "-m", "esker", "check", "--json", "--all-versions", str(path)]
    assert subprocess.run(check, capture_output=True).returncode == 0
    data = next((path / "segments").glob("*.0.data"))
    damaged = bytearray(data.read_bytes())
    damaged[100] ^= 1
    data.write_bytes(damaged)
    # The newest version has other values over them, but they are in it.
    found = subprocess.run(check, capture_output=True, text=True)
    assert found.returncode == 1 and "versions " in found.stdout and "v" in found.stdout
