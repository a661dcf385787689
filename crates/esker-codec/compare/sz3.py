#!/usr/bin/env python3
"""Our sz codec beside SZ3 (PyPI: pysz) on the volumes of the shared test data.

    pip install numpy pysz
    python crates/esker-codec/compare/sz3.py [--crop N] > table.md

Both get the same absolute bound: a share of the range of the ordinary values. SZ3 knows no fill
values; where a volume has them, SZ3 is also given the volume with the fill values replaced by the
mean, and is not charged for the mask (column "SZ3, mean").
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from pysz import sz, szConfig, szErrorBoundMode

ROOT = pathlib.Path(__file__).resolve().parents[3]
BENCH = ["cargo", "bench", "-q", "-p", "esker-codec", "--bench", "volumes", "--"]


def bench(*arguments):
    run = subprocess.run(BENCH + list(arguments) + sys.argv[1:], cwd=ROOT, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def sz3(values, bound, ordinary):
    config = szConfig()
    config.errorBoundMode = szErrorBoundMode.ABS
    config.absErrorBound = bound
    start = time.process_time()
    stored, _ = sz.compress(values, config)
    encoded = time.process_time()
    back, _ = sz.decompress(stored, values.dtype, values.shape)
    decoded = time.process_time()
    error = np.abs(back[ordinary].astype("f8") - values[ordinary])
    span = float(values[ordinary].max()) - float(values[ordinary].min())
    psnr = 20 * math.log10(span / math.sqrt(float((error**2).mean())))
    megabytes = values.nbytes / 1e6
    return {
        "ratio": values.nbytes / len(stored), "error": float(error.max()) / bound, "psnr": psnr,
        "encode": megabytes / (encoded - start), "decode": megabytes / (decoded - encoded),
    }


def main():
    ours = {(row["volume"], row["share"]): row for row in bench("--json", "--only", "sz")}
    print("| volume | of range | sz | SZ3 | SZ3, mean | sz / SZ3 | error sz, SZ3 | PSNR sz, SZ3 "
          "| MB/s encode sz, SZ3 | decode |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        bench("--export", folder)
        for path in sorted(pathlib.Path(folder).iterdir()):
            name, shape, fill = path.name.removesuffix(".f32").rsplit("_", 2)
            values = np.fromfile(path, "<f4").reshape([int(n) for n in shape.split("x")])
            ordinary = np.isfinite(values)
            if fill != "none":
                ordinary &= values != np.float32(fill)
            span = float(values[ordinary].max()) - float(values[ordinary].min())
            for share in (1e-2, 1e-3, 1e-4, 1e-5):
                own = ours[name, share]
                peer = sz3(values, share * span, ordinary)
                mean = None
                if fill != "none":
                    filled = np.where(ordinary, values, values[ordinary].mean(dtype="f8")).astype("f4")
                    mean = sz3(filled, share * span, ordinary)
                best = max(peer["ratio"], mean["ratio"] if mean else 0)
                print(f"| {name} | {share:.0e} | {own['ratio']:.2f} | {peer['ratio']:.2f} "
                      f"| {mean['ratio'] if mean else math.nan:.2f} | {own['ratio'] / best:.2f} "
                      f"| {own['error']:.3f}, {peer['error']:.3f} | {own['psnr']:.1f}, {peer['psnr']:.1f} "
                      f"| {own['encode']:.0f}, {peer['encode']:.0f} "
                      f"| {own['decode']:.0f}, {peer['decode']:.0f} |".replace("nan", "-"))
                sys.stdout.flush()


main()
