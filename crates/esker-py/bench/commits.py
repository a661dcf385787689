"""Commits of Esker beside Icechunk, zarr and tensorstore's OCDBT, in one run: `./test commits-speed`.

    commits.py [--commits 1000] [--rounds 3] [--mebibytes 1024] [--dir DIR] [--sync] [--json FILE] [--only PART,…]

- commits: one record of 16 KiB after the other, each committed, by everybody in turn: what commit 10 takes, and the last ones (medians of several
  neighbours), and the bytes of metadata for each commit: all bytes on the disk without those of the values.
- open: opening what has so many commits, and one value of it, each in a fresh process.
- volume: 1 GiB in 64 steps, a commit each, and all of it read back by somebody who opens it.

Everybody writes the same values and every value that is read is compared. Nobody compresses (values are random bits). Nobody waits for the disk; with --sync Esker
does, and says so: the others cannot be told to. zarr has no commits: what it writes is there at once, for a reader in the middle too. OCDBT's commit is a transaction. On ext4 a new file takes
longer for minutes after many were removed (the kernel's `recently_deleted`): begin on a directory where nobody has removed much, or name one on tmpfs by --dir, where commit 3,000
took what commit 10 did. Ratios are another's time divided by
ours, of medians: above 1 we are faster. The closing table has the targets, with those missed; exit code 1 where one is. Figures of clocks mean something only where nothing else runs.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# Of its warnings one is printed for each repository.
os.environ.setdefault("ICECHUNK_LOG", "error")

RECORD = 16 << 10
STEPS = 64
ROWS = []


def record(step, elements):
    """Random bits, another row for each step, cheap to make again."""
    return np.random.Generator(np.random.PCG64(step)).integers(0, 2**32, elements, dtype="u4").astype("i4")


def median(times):
    return statistics.median(times)


def stored(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


class Esker:
    """A container of logs, one session; a commit waits for the disk only if that was asked for."""

    name = "esker"

    def __init__(self, path, elements, records, sync=False):
        import esker

        self.ds = esker.create(path, layout="log")
        self.ds.create_dimension("t")
        self.ds.create_dimension("x", elements)
        self.v = self.ds.create_variable("v", "i4", ("t", "x"))
        self.act = self.ds.sync if sync else self.ds.commit
        self.act()

    def commit(self, step, values):
        self.v[step] = values
        self.act()

    def close(self):
        self.ds.close()

    @staticmethod
    def open(path):
        import esker

        return esker.open(path)["v"]


class Icechunk:
    """A repository on the local file system; a chunk is a record."""

    name = "icechunk"

    def __init__(self, path, elements, records, sync=False):
        import icechunk
        import zarr

        self.repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(path)))
        session = self.repository.writable_session("main")
        zarr.create_array(
            session.store, name="v", shape=(records, elements), chunks=(1, elements), dtype="i4", compressors=None, fill_value=0
        )
        session.commit("define")

    def commit(self, step, values):
        import zarr

        session = self.repository.writable_session("main")
        zarr.open_array(session.store, path="v", mode="r+")[step] = values
        session.commit(f"step {step}")

    def close(self):
        del self.repository

    @staticmethod
    def open(path):
        import icechunk
        import zarr

        repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(path)))
        return zarr.open_array(repository.readonly_session("main").store, path="v", mode="r")


class Zarr:
    """zarr 3 on the local file system. It has no commits."""

    name = "zarr"

    def __init__(self, path, elements, records, sync=False):
        import zarr

        self.v = zarr.create_array(
            str(path), name="v", shape=(records, elements), chunks=(1, elements), dtype="i4", compressors=None, fill_value=0
        )

    def commit(self, step, values):
        self.v[step] = values

    def close(self):
        pass

    @staticmethod
    def open(path):
        import zarr

        return zarr.open_array(str(path), path="v", mode="r")


class Ocdbt:
    """tensorstore's zarr3 driver over OCDBT on the local file system; a commit is a transaction."""

    name = "ocdbt"

    @staticmethod
    def spec(path):
        base = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{path}/"}}
        return {"driver": "zarr3", "kvstore": base}

    def __init__(self, path, elements, records, sync=False):
        import tensorstore as ts

        Path(path).mkdir()
        metadata = {
            "data_type": "int32",
            "shape": [records, elements],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, elements]}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }
        context = ts.Context({"file_io_sync": bool(sync)})
        self.ts = ts
        self.v = ts.open({**self.spec(path), "metadata": metadata, "create": True}, context=context).result()

    def commit(self, step, values):
        transaction = self.ts.Transaction()
        self.v.with_transaction(transaction)[step] = values
        transaction.commit_sync()

    def close(self):
        del self.v

    @staticmethod
    def open(path):
        import tensorstore as ts

        v = ts.open(Ocdbt.spec(path), open=True, read=True).result()

        class Values:
            shape = v.shape

            def __getitem__(self, key):
                return v[key].read().result()

        return Values()


ALL = [Esker, Icechunk, Zarr, Ocdbt]


def judge(what, value, target, least=True):
    """A line of the closing table."""
    good = value >= target if least else value <= target
    ROWS.append({"what": what, "value": float(value), "target": target, "at": "least" if least else "most", "good": bool(good)})


def in_turn(contenders, turn):
    """Whoever begins changes from round to round."""
    names = list(contenders)
    return [names[(place + turn) % len(names)] for place in range(len(names))]


def commits(folder, peers, number, rounds, sync, results):
    """Everybody commits records one by one, in turn."""
    elements = RECORD // 4
    first, last = {p.name: [] for p in peers}, {p.name: [] for p in peers}
    every = {p.name: [] for p in peers}
    metadata = {}
    for turn in range(rounds):
        paths = {p.name: folder / f"commits-{p.name}-{turn}" for p in peers}
        writers = {p.name: p(paths[p.name], elements, number, sync) for p in peers}
        times = {name: [] for name in writers}
        for step in range(number):
            values = record(step, elements)
            for name in in_turn(writers, step + turn):
                start = time.perf_counter()
                writers[name].commit(step, values)
                times[name].append(time.perf_counter() - start)
        for name, writer in writers.items():
            writer.close()
            # Commit 10 among its neighbours, and as many of the last.
            first[name] += times[name][5:15]
            last[name] += times[name][-100:] if number >= 200 else times[name][-10:]
            every[name].append(times[name])
            # Nothing is removed before the end: ext4 looks for inodes that were not freed lately, which takes longer the more were.
            metadata[name] = (stored(paths[name]) - number * RECORD) / number
    found = {}
    for p in peers:
        found[p.name] = {"commit_10": median(first[p.name]), "last": median(last[p.name]), "metadata": metadata[p.name], "path": str(paths[p.name])}
        # A commit now and then does what others leave undone, which no median shows.
        found[p.name]["mean"] = statistics.fmean(time for times in every[p.name] for time in times)
        found[p.name]["on_the_way"] = {
            at: median([time for times in every[p.name] for time in times[at - at // 4 : at + at // 4]])
            for at in (10, 30, 100, 300, 1000, 3000)
            if at + at // 4 <= number
        }
    results["commits"] = {"number": number, "of": {name: {k: v for k, v in row.items() if k != "path"} for name, row in found.items()}}
    print(f"\n{number} commits of 16 KiB, medians of {rounds} rounds in turn; metadata is what is stored beyond the values")
    print(f"  {'':10} {'commit 10':>12} {'last ones':>12} {'ratio':>7} {'mean of all':>12} {'metadata a commit':>18}")
    ours = found["esker"]
    for name, row in found.items():
        ratio = "" if name == "esker" else f"{row['last'] / ours['last']:.2f}"
        print(f"  {name:10} {row['commit_10'] * 1e3:9.3f} ms {row['last'] * 1e3:9.3f} ms {ratio:>7} {row['mean'] * 1e3:9.3f} ms {row['metadata']:16.0f} B")
    way = ", ".join(f"{at}: {time * 1e3:.3f} ms" for at, time in ours["on_the_way"].items())
    print(f"  esker's commits on the way, medians around number {way}")
    judge(f"commit {number} over commit 10", ours["last"] / ours["commit_10"], 1.2, least=False)
    judge("bytes of metadata a commit", ours["metadata"], 1024, least=False)
    if "icechunk" in found:
        judge("commit of a record, times faster than Icechunk", found["icechunk"]["last"] / ours["last"], 5)
    return {name: row["path"] for name, row in found.items()}


ONE_VALUE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np, commits
peer = next(p for p in commits.ALL if p.name == sys.argv[2])
if peer.name == "esker":
    import esker
elif peer.name == "icechunk":
    import icechunk, zarr
elif peer.name == "zarr":
    import zarr
else:
    import tensorstore
step = int(sys.argv[4])
expected = int(commits.record(step, commits.RECORD // 4)[7])
start = time.perf_counter()
value = peer.open(sys.argv[3])[step, 7]
seconds = time.perf_counter() - start
assert int(np.asarray(value)) == expected, (value, expected)
print(seconds)
"""


def opening(paths, number, rounds, results):
    """Opening, and one value, in a fresh process each; what Python imports does not count."""
    times = {name: [] for name in paths}
    for turn in range(max(rounds, 5)):
        for name in in_turn(paths, turn):
            words = [sys.executable, "-c", ONE_VALUE, str(Path(__file__).parent), name, paths[name], str(number * 2 // 3 + turn)]
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            # Icechunk warns on standard output.
            times[name].append(float(done.stdout.split()[-1]))
    medians = {name: median(values) for name, values in times.items()}
    results["open"] = medians
    print(f"\nopening what has {number} commits, and one value of it")
    for name, value in medians.items():
        ratio = "" if name == "esker" else f"{value / medians['esker']:.2f}"
        print(f"  {name:10} {value * 1e3:9.3f} ms {ratio:>7}")
    if "icechunk" in medians:
        judge(f"open and one value after {number} commits, times faster than Icechunk", medians["icechunk"] / medians["esker"], 5)


def touch(mebibytes):
    """Memory that a virtual machine has not used yet, or has given back, costs whoever touches it first many times what it costs the next; so nobody is the first."""
    np.ones(mebibytes << 17)


def volume(folder, peers, mebibytes, rounds, sync, results):
    """Much in few commits, and all of it read back."""
    elements = (mebibytes << 20) // STEPS // 4
    written, read = {p.name: [] for p in peers}, {p.name: [] for p in peers}
    of = {p.name: p for p in peers}
    # Made before the times begin; a permutation tells steps apart.
    base = record(1, elements)
    for turn in range(rounds):
        for name in in_turn(of, turn):
            path = folder / f"volume-{name}"
            touch(mebibytes)
            start = time.perf_counter()
            writer = of[name](path, elements, STEPS, sync)
            for step in range(STEPS):
                base[0] = step
                writer.commit(step, base)
            writer.close()
            written[name].append(time.perf_counter() - start)
            touch(mebibytes)
            start = time.perf_counter()
            values = np.asarray(of[name].open(path)[:])
            read[name].append(time.perf_counter() - start)
            assert values.shape == (STEPS, elements), values.shape
            assert (values[:, 0] == np.arange(STEPS)).all() and (values[:, 1:] == base[1:]).all(), name
            del values, writer
            shutil.rmtree(path)
    found = {name: {"write": median(written[name]), "read": median(read[name])} for name in of}
    results["volume"] = {"mebibytes": mebibytes, "steps": STEPS, "of": found}
    print(f"\n{mebibytes} MiB in {STEPS} commits, and read whole")
    print(f"  {'':10} {'write':>10} {'ratio':>7} {'read':>10} {'ratio':>7}")
    ours = found["esker"]
    for name, row in found.items():
        ratios = ["" if name == "esker" else f"{row[what] / ours[what]:.2f}" for what in ("write", "read")]
        print(f"  {name:10} {row['write']:8.3f} s {ratios[0]:>7} {row['read']:8.3f} s {ratios[1]:>7}")
    if "icechunk" in found:
        judge("writing, times faster than Icechunk", found["icechunk"]["write"] / ours["write"], 2)
        judge("reading whole, times faster than Icechunk", found["icechunk"]["read"] / ours["read"], 3)


def here(peers):
    """Those that are installed, with their versions."""
    modules = {"esker": ["esker"], "icechunk": ["icechunk", "zarr"], "zarr": ["zarr"], "ocdbt": ["tensorstore"]}
    found, versions = [], {}
    for peer in peers:
        try:
            for module in modules[peer.name]:
                versions[module] = getattr(__import__(module), "__version__", None)
        except ImportError as error:
            print(f"{peer.name} is left out: {error}", file=sys.stderr)
            continue
        found.append(peer)
    from importlib import metadata

    return found, {name: version or metadata.version(name) for name, version in versions.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=1000, help="records that are committed one by one; 10000 is the long run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--dir", default=tempfile.gettempdir())
    parser.add_argument("--sync", action="store_true", help="Esker and OCDBT wait for the disk; zarr and Icechunk cannot")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="commits,open,volume")
    parser.add_argument("--peers", default=",".join(p.name for p in ALL[1:]))
    told = parser.parse_args()
    if told.commits < 20:
        parser.error("--commits: commit 10 and the last ones are compared, so there are at least 20")
    asked = told.only.split(",")
    names = ["esker", *told.peers.split(",")]
    peers, versions = here([p for p in ALL if p.name in names])
    if told.sync:
        # Neither side waits for the disk unless both do.
        peers = [p for p in peers if p.name in ("esker", "ocdbt")]
    results = {"machine": {"cpu": platform.processor(), "cores": os.cpu_count(), "load": os.getloadavg()}, "versions": versions}
    print(", ".join(f"{name} {version}" for name, version in versions.items()), f"\nload {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores, "
          f"{'waiting' if told.sync else 'nobody waits'} for the disk", flush=True)
    with tempfile.TemporaryDirectory(dir=told.dir, prefix="esker-commits-") as folder:
        folder = Path(folder)
        if "commits" in asked or "open" in asked:
            paths = commits(folder, peers, told.commits, told.rounds, told.sync, results)
            if "open" in asked:
                opening(paths, told.commits, told.rounds, results)
        if "volume" in asked:
            volume(folder, peers, told.mebibytes, told.rounds, told.sync, results)
    results["targets"] = ROWS
    print(f"\n{'figure':60} {'value':>10} {'target':>10}")
    for row in ROWS:
        sign = ">=" if row["at"] == "least" else "<="
        print(f"{row['what']:60} {row['value']:10.3g} {sign + ' ' + format(row['target'], 'g'):>10} {'' if row['good'] else 'MISSED'}")
    if told.json:
        Path(told.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(row["good"] for row in ROWS) else 1


if __name__ == "__main__":
    sys.exit(main())
