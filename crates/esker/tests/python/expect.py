"""Compares files with what is noted beside them: FILE.nc with FILE.expected."""

import sys

import netCDF4
import numpy

wrong = 0
for path in sys.argv[1:]:
    with netCDF4.Dataset(path) as dataset, open(path[:-2] + "expected") as lines:
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
        for line in lines:
            name, *words = line.split()
            found = numpy.asarray(dataset[name][...]).reshape(-1)
            if found.dtype.kind == "S":
                found = numpy.frombuffer(found.tobytes(), dtype="u1")
            found = found.astype("f8")
            if len(found) != len(words):
                print(f"{path}: {name}: {len(found)} values instead of {len(words)}")
                wrong += 1
                continue
            known = numpy.array([word != "?" for word in words], dtype=bool)
            expected = numpy.array([0.0 if word == "?" else float(word) for word in words])
            differ = numpy.flatnonzero(known & (found != expected))
            if len(differ):
                at = differ[0]
                print(f"{path}: {name}[{at}] is {found[at]} instead of {expected[at]}")
                wrong += 1
sys.exit(1 if wrong else 0)
