"""Cost of the probe's engine per work request without a device: post and poll are doubles that cost about nothing.

Left out: the binding's own post (about 0.04 us per request in a prebuilt chain) and the provider's. Not a test.
"""

from __future__ import annotations

import time
import tracemalloc

from validators.rdma.host.chains import LONGEST_CHAIN, chain_slices, run_window

REQUESTS = 1_000_000


def main() -> None:
    chains = len(chain_slices(REQUESTS, LONGEST_CHAIN))
    ready: list[tuple[int, str]] = []

    def post(chain: int) -> None:
        ready.append((chain, ""))

    def poll() -> list[tuple[int, str]]:
        found = ready[:16]
        del ready[:16]
        return found

    run_window(chains, 16, post, poll, 60.0)
    best = min(_timed(chains, post, poll) for _ in range(5))
    print(f"engine: {best / REQUESTS * 1e6:.4f} us per work request (limit 0.15), chains of {LONGEST_CHAIN}")
    tracemalloc.start()
    run_window(chains, 16, post, poll, 60.0)
    before = tracemalloc.get_traced_memory()[0]
    run_window(chains, 16, post, poll, 60.0)
    print(f"memory kept by a further 10^6 posts: {tracemalloc.get_traced_memory()[0] - before} bytes")


def _timed(chains: int, post, poll) -> float:
    start = time.perf_counter()
    run_window(chains, 16, post, poll, 60.0)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
