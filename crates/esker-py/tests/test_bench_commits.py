"""The measuring of commits runs, also where none of its peers is installed."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "bench" / "commits.py"


def test_commits_are_measured_without_peers(tmp_path):
    words = ["--peers", "none", "--commits", "40", "--rounds", "1", "--mebibytes", "1", "--dir", tmp_path, "--json", tmp_path / "found"]
    done = subprocess.run([sys.executable, PROGRAM, *map(str, words)], capture_output=True, text=True)
    # 1: a figure of a clock missed its target, which says nothing here.
    assert done.returncode in (0, 1), done.stderr
    found = json.loads((tmp_path / "found").read_text())
    esker = found["commits"]["of"]["esker"]
    assert esker["commit_10"] > 0 and esker["last"] > 0 and found["open"]["esker"] > 0
    assert found["volume"]["of"]["esker"]["read"] > 0
    # What a commit stores beyond its values is no clock's figure.
    assert 0 < esker["metadata"] <= 1024
    assert [name.name for name in tmp_path.iterdir()] == ["found"], "nothing is left behind"
