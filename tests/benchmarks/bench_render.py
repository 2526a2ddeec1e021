"""What rendering costs, in CPU seconds, and against two floors done in the same run.

    python tests/benchmarks/bench_render.py

Floors: `json` is the standard library writing the same CONFIG_DB data with indentation; `bytes` is only putting the same
files on disk. Figures are CPU seconds of this process (or of a cold child for the command line), best of three.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# 32 uplinks of 100G a leaf into 32 spines, four tenants: 288 switches and 8,192 fabric links; a DS5000 splits odd cages
# into eight ports, the Linux router all of them
PORTS = {
    "sonic": {"model": "celestica-ds5000", "up": "33-39:2", "spine": "1-63:2"},
    "frr": {"model": "linux-64x800", "up": "33-36", "spine": "1-64"},
}
LARGE = """
site: large
profile: minimal
fabrics:
  fabric:
    carries: [frontend, storage]
    leaf: {{name: leaf, model: {model}, nos: {nos}, count: {leaves}, down: {{ports: 1-8, breakout: 2x400G}}, up: {{ports: "{up}", breakout: 8x100G}}}}
    spine: {{name: spine, model: {model}, nos: {nos}, count: 32, down: {{ports: "{spine}", breakout: 8x100G}}}}
servers:
  compute: {{count: {servers}, nics: {{fe: {{nic: 2x cx7-1x400g, fabric: fabric, placement: alternating}}}}}}
tenants:
  t1: {{servers: ["compute-[{second}-{a}]:fe0"], subnets: {{default: 10.0.0.0/16}}}}
  t2: {{servers: ["compute-[{b}-{servers}]"], subnets: {{default: 10.1.0.0/16}}, peers: [t4]}}
  t3: {{servers: ["compute-{first}:fe0-port0"], subnets: {{default: 10.2.0.0/16}}}}
  t4: {{servers: ["compute-[{first}-{a}]:fe1"], subnets: {{default: 10.3.0.0/16}}, service: true}}
"""


def best(work: Callable[[], object], runs: int = 3) -> float:
    """CPU seconds of the best run."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def cold(*args: str) -> tuple[float, int]:
    """CPU seconds and largest memory (MiB) of the command line in a process of its own."""
    code = "from fabric.cli.main import main; main()"
    child = subprocess.Popen([sys.executable, "-c", code, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def measure(site: str) -> None:
    """Print one site's figures."""
    from fabric.build import load_plan
    from fabric.render.registry import render_site
    from fabric.render.writer import write_tree

    plan = load_plan(site)
    rendered = list(render_site(plan))
    planning = best(lambda: load_plan(site))
    rendering = best(lambda: list(render_site(plan)))
    data = [json.loads(files["config_db.json"]) for _, files in rendered if "config_db.json" in files]
    floor_json = best(lambda: [json.dumps(db, indent=4) for db in data])
    size = sum(len(text) for _, files in rendered for text in files.values())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        started = time.process_time()
        write_tree(out, rendered)
        writing = time.process_time() - started
        again = best(lambda: write_tree(out, rendered))
        command, memory = cold("render", site, "--out", str(Path(folder) / "cold"))
    name = Path(site).name
    ratio = f"{rendering / floor_json:5.2f}" if data else "    -"
    print(
        f"{name:14} {len(rendered):5} devices {size / 1e6:6.1f} MB  plan {planning:5.2f}  render {rendering:5.2f}"
        f"  write {writing:5.2f}  again {again:5.2f}  json floor {floor_json:5.2f}  render/json {ratio}"
        f"  cold CLI {command:5.2f} s, {memory} MiB"
    )


def large(folder: str, leaves: int, nos: str) -> str:
    """Write the large site's inventory and return its folder."""
    path = Path(folder) / f"large-{nos}-{leaves}"
    path.mkdir()
    servers = leaves * 4
    digits = 3
    names = {"a": f"{servers // 2:0{digits}d}", "b": f"{servers // 2 + 1:0{digits}d}"}
    (path / "site.yaml").write_text(
        LARGE.format(
            nos=nos,
            leaves=leaves,
            servers=servers,
            first=f"{1:0{digits}d}",
            second=f"{2:0{digits}d}",
            **names,
            **PORTS[nos],
        )
    )
    return str(path)


def main() -> None:
    """Measure the sites named on the command line, else a few shipped ones and two large ones."""
    sites = sys.argv[1:]
    for site in sites or ["lab", "xoc-256", "xoc-1024"]:
        measure(site)
    if not sites:
        with tempfile.TemporaryDirectory() as folder:
            for leaves in (64, 256):
                measure(large(folder, leaves, "sonic"))
                measure(large(folder, leaves, "frr"))


if __name__ == "__main__":
    main()
