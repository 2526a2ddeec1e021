"""SONiC tables about the device itself: metadata, management, neighbors and counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.hardware.profiles import switch_profile
from fabric.plan import EDGE, GATEWAY, LEAF_KINDS, SERVER, SPINE

if TYPE_CHECKING:
    from fabric.plan import Plan, Switch
    from fabric.render.sonic_json import Row, Table, Tables

# SONiC knows a fixed list of device types (sonic-device_metadata.yang)
_TYPES = {**dict.fromkeys(LEAF_KINDS, "LeafRouter"), SPINE: "SpineRouter"}
_NEIGHBOR_TYPES = {**_TYPES, SERVER: "Server", GATEWAY: "Server", EDGE: "Server"}

# name -> poll interval in milliseconds, empty where the model has none
_COUNTERS = {
    "PORT": "1000",
    "PORT_RATES": "",
    "PORT_BUFFER_DROP": "60000",
    "RIF": "1000",
    "RIF_RATES": "",
    "QUEUE": "10000",
    "QUEUE_WATERMARK": "60000",
    "PG_WATERMARK": "60000",
    "PG_DROP": "10000",
    "BUFFER_POOL_WATERMARK": "60000",
    "PFCWD": "",
    "WRED_ECN_QUEUE": "10000",
    "WRED_ECN_PORT": "10000",
}


def base_tables(plan: Plan, switch: Switch) -> Tables:
    """Return the tables that say who the switch is, who is beside it and how it is managed."""
    neighbors, metadata = _neighbors(plan, switch)
    tables: Tables = {
        "DEVICE_METADATA": {"localhost": _metadata(plan, switch)},
        "DEVICE_NEIGHBOR": neighbors,
        "DEVICE_NEIGHBOR_METADATA": metadata,
        "FEATURE": {name: {"state": "enabled"} for name in ("bgp", "lldp")},
        "FLEX_COUNTER_TABLE": {
            name: {"FLEX_COUNTER_STATUS": "enable"} | ({"POLL_INTERVAL": interval} if interval else {})
            for name, interval in _COUNTERS.items()
        },
        "LLDP": {"GLOBAL": {"enabled": "true", "hello_time": "5", "system_name": switch.name}},
        "LOOPBACK_INTERFACE": _loopbacks(switch),
        "SWITCH_HASH": {"GLOBAL": _hash(switch)},
    }
    return tables | _management(plan, switch)


def _metadata(plan: Plan, switch: Switch) -> Row:
    profile = switch_profile(switch.model)
    return {
        "hostname": switch.name,
        "hwsku": profile.hwsku,
        "platform": profile.platform,
        "mac": switch.mac,
        "type": _TYPES[switch.kind],
        "bgp_asn": str(switch.asn),
        "bgp_router_id": switch.router_id,
        "docker_routing_config_mode": "split-unified",
        # FRR's BFD daemon is only started in the management-framework variant of the BGP container
        "frr_mgmt_framework_config": "true",
        "buffer_model": "traditional",
        "synchronous_mode": "enable",
        "default_bgp_status": "up",
        # the watchdog runs where PFC_WD says so and nowhere else
        "default_pfcwd_status": "disable",
        "timezone": plan.settings.get("timezone", "UTC"),
    }


def _loopbacks(switch: Switch) -> Table:
    rows: Table = {"Loopback0": {}, f"Loopback0|{switch.router_id}/32": {}}
    if switch.vtep:
        rows |= {"Loopback1": {}, f"Loopback1|{switch.vtep}/32": {}}
    return rows


def _hash(switch: Switch) -> Row:
    """Tunnelled packets are told apart by the outer UDP source port; spines of plain traffic by the five-tuple too.

    SONiC's model has no word for the RoCE queue pair: where the plan wants it, the vendor's own command sets it.
    """
    del switch
    fields = ["DST_IP", "SRC_IP", "IP_PROTOCOL", "L4_DST_PORT", "L4_SRC_PORT"]
    return {"ecmp_hash": fields, "lag_hash": fields}


def _neighbors(plan: Plan, switch: Switch) -> tuple[Table, Table]:
    ports: Table = {}
    devices: Table = {}
    for link in plan.links_of.get(switch.name, ()):
        far = link.far(switch.name)
        ports[link.end(switch.name).interface] = {"name": far.device, "port": far.interface}
        if far.device not in devices:
            devices[far.device] = _neighbor(plan, far.device)
    return ports, devices


def _neighbor(plan: Plan, device: str) -> Row:
    row = {"type": _NEIGHBOR_TYPES[plan.kind_of[device]]}
    other = plan.switches.get(device) or plan.gateways.get(device)
    if other:
        row["lo_addr"] = f"{other.router_id}/32"
        row["mgmt_addr"] = other.management.partition("/")[0]
    if device in plan.switches:
        row["hwsku"] = switch_profile(plan.switches[device].model).hwsku
    return row


def _management(plan: Plan, switch: Switch) -> Tables:
    """The management port in a VRF of its own, so that a management route is never a way for the fabric."""
    tables: Tables = {}
    if switch.management:
        gateway = plan.management_gateway(switch.management)
        tables |= {
            "MGMT_PORT": {"eth0": {"alias": "eth0", "admin_status": "up"}},
            "MGMT_INTERFACE": {f"eth0|{switch.management}": {"gwaddr": gateway}},
            "MGMT_VRF_CONFIG": {"vrf_global": {"mgmtVrfEnabled": "true"}},
        }
    return tables
