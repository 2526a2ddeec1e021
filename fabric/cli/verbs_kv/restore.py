"""`kvfabric kv restore`: many nodes pull KV cache from a pool at once, on the site's real topology."""

from __future__ import annotations

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.numbers import count
from fabric.cli.output import print_json, table


@click.command()
@click.argument("site")
@click.option("--nodes", required=True, type=count(), help="Nodes that pull at once.")
@click.option("--size", required=True, help="Bytes for each node: 20GB, 8GiB, 500MB.")
@click.option("--window", default="1s", show_default=True, help="Time in which all should be done: 1s, 500ms.")
@click.option("--stagger", default="0s", show_default=True, help="Spread the starts evenly over this time.")
@click.option("--fabric", default="", help="Default: the fabric with RDMA.")
@click.option("--pool", multiple=True, metavar="SERVER", help="Servers that hold the cache. Repeatable.")
@click.option("--pool-ports", default=0, type=count(0), help="Use only so many ports of the pool.")
@click.option("--qps", default=8, show_default=True, type=click.IntRange(1, 64), help="QPs a node.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(
    *,
    site: str,
    nodes: int,
    size: str,
    window: str,
    stagger: str,
    fabric: str,
    pool: tuple[str, ...],
    pool_ports: int,
    qps: int,
    form: str,
) -> int:
    """Say how long a restore burst takes on SITE, what binds it, and what would help. Exit 1 when it is late.

    \b
    Examples:
      kvfabric kv restore xoc-256 --nodes 8 --size 20GB --window 1s
      kvfabric kv restore xoc-256 --nodes 8 --size 20GB --pool compute-032 --pool-ports 2
    """
    from fabric.analysis.flows.amounts import read_bytes, read_seconds
    from fabric.analysis.flows.restore import restore
    from fabric.build import load_plan

    size_bytes, window_s, stagger_s = read_bytes(size), read_seconds(window), read_seconds(stagger)
    answer = restore(
        load_plan(site),
        nodes,
        size_bytes,
        window_s,
        fabric=fabric,
        pool=pool,
        pool_ports=pool_ports,
        qps=qps,
        stagger_s=stagger_s,
    )
    if form == "json":
        print_json(answer.to_dict())
    else:
        times = (answer.p50_s, answer.p95_s, answer.p99_s, answer.max_s)
        rows = [
            ("demand", f"{answer.demand_gb_s:.1f} GB/s ({answer.demand_gb_s * 8:.0f} Gb/s payload)"),
            ("pool ports", f"{answer.pool_ports} of {answer.port_gbps}G, {answer.pool_ports_needed} needed"),
            ("done p50 / p95 / p99 / max", " / ".join(f"{t:.3f}" for t in times) + " s"),
            ("late", f"{answer.late} of {nodes} after {answer.window_s:g} s"),
            ("binding link", f"{answer.binding} ({answer.binding_tier})"),
            ("what to do", answer.advice),
            ("model", "max-min fair shares at 98 % of line rate, ECMP hashed a QP; no DCQCN, PFC or storage limits"),
        ]
        click.echo(table(("restore", f"{nodes} x {size} in {window}"), rows))
    return EXIT_FAILED if answer.late else EXIT_PASS
