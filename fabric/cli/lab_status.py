"""The data of `lab status` as text: the verdict first, then what is broken, then figures by subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Iterator


def text(data: dict[str, Any]) -> str:
    """Return everything, a blank line between subjects."""
    parts = [_verdict(data), _routers(data), _tenants(data), _gateways(data), _servers(data), _vips(data)]
    return "\n\n".join(part for part in (*parts, _containers(data), _links(data)) if part)


def _verdict(data: dict[str, Any]) -> str:
    plan = f"lab {data['lab']}, site {data['site']}, plan {data['plan_digest'][:12]}"
    lacks = data["missing"]
    lines = [f"{plan}: {_not_as_planned(len(lacks)) if lacks else 'as planned'}"]
    lines += [f"  {line}" for line in lacks]
    lines += [f"  fault made here: {f['target']} {f['kind']} {f['text']}" for f in data["faults"]]
    return "\n".join(lines)


def _not_as_planned(count: int) -> str:
    return "1 thing is NOT as planned" if count == 1 else f"{count} things are NOT as planned"


def _share(part: dict[str, Any]) -> str:
    return f"{part['up']}/{part['all']}" + ("" if part["up"] == part["all"] else " DOWN") if part["all"] else "-"


def _routers(data: dict[str, Any]) -> str:
    rows = []
    for r in data["routers"]:
        wanted = sum(len(far) for far in r["rmac_wanted"].values())
        known = sum(len(set(far) & set(r["rmac"].get(vni, ()))) for vni, far in r["rmac_wanted"].items())
        figures = [_share(r[key]) for key in ("bgp", "evpn", "bfd", "vni")]
        rmac = _share({"up": known, "all": wanted})
        rows.append([r["node"], *figures, rmac, r["evpn"]["prefixes"] or "-", r["routes"].get("default", 0)])
    header = ["router", "bgp", "evpn", "bfd", "vni", "rmac", "evpn prefixes", "underlay routes"]
    dark = sum(r["bgp"]["dark"] for r in data["routers"])
    note = f"\nnot counted: {dark} sessions on ports whose far end is not in this slice" if dark else ""
    return table(header, rows) + note if rows else ""


def _tenants(data: dict[str, Any]) -> str:
    nodes = list(dict.fromkeys(node for row in data["tenants"] for node in row["routes"]))
    rows = [[row["vrf"], row["vni"], *(_cell(row["routes"], node) for node in nodes)] for row in data["tenants"]]
    return table(["bgp routes of", "vni", *nodes], rows) if rows else ""


def _cell(routes: dict[str, int | None], node: str) -> Any:
    count = routes.get(node, "-")
    return "?" if count is None else count


def _gateways(data: dict[str, Any]) -> str:
    rows: list[list[Any]] = []
    for g in data["gateways"]:
        if g["trouble"]:
            rows.append([g["node"], "DOES NOT ANSWER", "", "", g["trouble"]])
            continue
        flows = " ".join(f"{label}={count}" for label, count in g["flows"].items() if count) or "none"
        checks = ", ".join(f"{name}: {said}" for name, said in g["checks"].items() if said != "ok") or "ok"
        phase = g["phase"] + (", withdrawn" if g["withdrawn"] else "")
        rows.append([g["node"], phase, f"{g['conntrack']['count']}/{g['conntrack']['max']}", flows, checks])
    return table(["gateway", "phase", "conntrack", "open flows", "checks"], rows) if rows else ""


def _servers(data: dict[str, Any]) -> str:
    rows = []
    for server in data["servers"]:
        devices = " ".join(
            item["device"] if item["state"] == "ACTIVE" else f"{item['device']}={item['state'].upper()}"
            for item in server["rdma"]
        )
        rows.append([server["node"], ",".join(server["tenants"]), server["trouble"] or devices or "-"])
    return table(["server", "tenants", "rdma devices"], rows) if rows else ""


def _vips(data: dict[str, Any]) -> str:
    rows = [row for item in data["balancers"] for row in _vip_rows(item)]
    return table(["balancer", "vip", "service", "backend", "state", "last check", "clients"], rows) if rows else ""


def _vip_rows(item: dict[str, Any]) -> Iterator[list[Any]]:
    for service in item["services"]:
        for backend in service["backends"]:
            words = ("up", "nobody listens", "NOT REACHED")
            state = words[0] if backend["up"] else words[1] if backend["reached"] else words[2]
            state = state if item["running"] else "HAPROXY IS DOWN"
            row = [item["node"], service["vip"], service["name"], backend["address"]]
            yield [*row, state, backend["check"], backend["clients"]]


def _containers(data: dict[str, Any]) -> str:
    columns = ["container", "state", "address", "group", "image"]
    rows = [[row[key] for key in columns] for row in data.get("containers", ())]
    return table(columns, rows) if rows else ""


def _links(data: dict[str, Any]) -> str:
    rows = [[k["id"], k["a"], k["b"]] for k in data["links"]]
    return table(["link", "a", "b"], rows) if rows else ""
