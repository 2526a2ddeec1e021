"""Plays flows in SimGrid. Run by the system's Python, where Debian puts SimGrid: JSON on stdin, JSON on stdout.

In: `paths` (links of each flow, padded with -1), `capacity` (of each link), `size` (whole units a flow), `probe` (s).
Out: `rates` while every flow is under way, and `ends`, when each was done. SimGrid's own TCP effects are off: CM02, no
cross traffic, no window, no factors; what is left is its max-min solver.
"""

from __future__ import annotations

import json
import sys

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, this_actor

_OPTIONS = {
    "network/model": "CM02",
    "network/crosstraffic": "0",
    "network/TCP-gamma": "0",
    "network/bandwidth-factor": "1.0",
    "network/latency-factor": "1.0",
    "network/weight-S": "0",
    "network/optim": "Full",  # Comm.remaining is brought up to date only when everything is
    "surf/precision": "1e-9",
}


def main() -> None:
    case = json.load(sys.stdin)
    engine = Engine(["flows", "--log=root.threshold:error", *(f"--cfg={k}:{v}" for k, v in _OPTIONS.items())])
    zone = NetZone.create_full_zone("fabric")
    links = [zone.create_link(f"link-{k}", [c]).set_latency(0).seal() for k, c in enumerate(case["capacity"])]
    pairs = []
    for k, path in enumerate(case["paths"]):
        one, two = (zone.create_host(f"{side}-{k}", [1e9]).seal() for side in ("from", "to"))
        route = [LinkInRoute(links[link]) for link in path if link >= 0]
        zone.add_route(one.netpoint, two.netpoint, None, None, route, False)
        pairs.append((one, two))
    zone.seal()
    found: dict[str, list[float]] = {}

    def play() -> None:
        flows = [Comm.sendto_async(one, two, case["size"]) for one, two in pairs]
        this_actor.sleep_for(case["probe"])
        found["rates"] = [(case["size"] - flow.remaining) / case["probe"] for flow in flows]
        for flow in flows:
            flow.wait()
        found["ends"] = [flow.finish_time for flow in flows]

    Actor.create("play", pairs[0][0], play)
    engine.run()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
