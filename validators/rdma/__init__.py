"""RDMA probes shaped like KV cache: what a serving stack will do to the fabric, and whether it keeps its promise.

`host/` is what runs on a probe host and needs nothing but Python, rdma-core and one of the Python bindings; everything
else here plans workloads, starts both ends through an agent and judges what they measured.
"""
