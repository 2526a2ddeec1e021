"""Which command answers which question, on which kind of device. Data, not code.

`sonic` is community SONiC with a bash login, `sonic-cli` the shell of vendor builds (Enterprise SONiC), `linux` an FRR
router, gateway or server. A question that a dialect does not know cannot be asked there, and the answer says so.

Sources of `sonic-cli`: renderer templates of sonic-mgmt-framework, designs in sonic-net/SONiC, printed sessions of
Enterprise SONiC 3.4 to 4.3. One command a line: a question may need several.
"""

from __future__ import annotations

from types import MappingProxyType

SONIC, SONIC_CLI, LINUX = "sonic", "sonic-cli", "linux"
# written from documents, and never seen on a device: reports name what was asked with it
UNPROVEN = frozenset({SONIC_CLI})

# daemons whose JSON the control-plane checks read; the shell differs only in rights
_FRR = {
    "bgp": "show bgp vrf all summary json",
    "bfd": "show bfd peers json",
    # how often sessions went down: asked at the start of a run and again near its end
    "bgp-counters": "show bgp vrf all summary json",
    "bfd-counters": "show bfd peers counters json",
    "vrf-vni": "show vrf vni json",
    "evpn-vni": "show evpn vni json",
    "evpn-rmac": "show evpn rmac vni all json",
    "evpn-rds": "show bgp l2vpn evpn vni json",
    "evpn-routes": "show bgp l2vpn evpn route type prefix json",
    "routes": "show ip route json",
    "vrf-routes": "show ip route vrf all json",
}

_CARRIER = 'for p in /sys/class/net/*; do echo "${p##*/} $(cat $p/carrier_changes)"; done'

# a lab's own machine: each moment when it let nobody run, with its length in s, from the first question to the second
_WATCH = (
    "import os, time; f = '/run/kvfabric-pauses'; last = time.time()\n"
    "while os.path.exists(f) and last < os.stat(f).st_ctime + 7200:\n"
    " time.sleep(0.05); now = time.time()\n"
    " if now - last > 0.2: open(f + '.log', 'a').write('%.2f %.2f\\n' % (now, now - last))\n"
    " last = now"
)
_PAUSES = {
    "pauses": "cd /run && rm -f kvfabric-pauses && sleep 0.1 && : > kvfabric-pauses.log && : > kvfabric-pauses && "
    f'{{ setsid python3 -c "{_WATCH}" </dev/null >/dev/null 2>&1 & }}',
    "pauses-since": "cd /run && rm kvfabric-pauses && date +%s.%N && cat kvfabric-pauses.log && rm kvfabric-pauses.log",
}

_LINUX = _PAUSES | {
    "carrier": _CARRIER,
    # one vtysh for both: to start it costs more than any answer; its first line is the daemons, or why there are none
    "version": "uname -sr; vtysh -c 'show daemons' -c 'show version' 2>&1 | "
    "sed -n -e '1{s/^/daemons: /;h;}' -e '/^FRRouting/p' -e '${g;p;}'",
    "clock": "date +%s",
    "lldp": "lldpcli -f json show neighbors details",
    "links": "ip -j -d link show",
    "addresses": "ip -j address show",
    "port-speeds": 'for p in /sys/class/net/*; do echo "${p##*/} $(cat $p/speed 2>/dev/null) $(cat $p/operstate) '
    '$(cat $p/carrier_changes)"; done',
    "optics": 'for p in /sys/class/net/*; do test -e $p/device && echo "# ${p##*/}" && ethtool -m ${p##*/}; done; true',
    "port-counters": 'for p in /sys/class/net/*; do test -e $p/device && echo "# ${p##*/}" && '
    "ethtool -S ${p##*/}; done; true",
    "config": "vtysh -c 'show running-config no-header'",
    "roce": 'sh /etc/kvfabric/roce.sh --check 2>&1; echo "exit $?"',
    # 1 is a gateway that is not well, which its answer says better
    "gateway": "PATH=$PATH:/usr/local/sbin gatewayctl status --json || test $? -eq 1",
    "nft": "nft -j list table ip kvfabric",
    "nft-running": "nft -s list table ip kvfabric",
    # the rules as this very nft prints them when the file is loaded into a network namespace of its own
    "nft-file": "unshare -n sh -c 'nft -f /etc/kvfabric/nftables.conf && nft -s list table ip kvfabric'",
    "file-sums": "cd /etc/kvfabric && sha256sum *",
}

_SONIC = {
    "carrier": _CARRIER,
    "version": "show version; echo daemons: $(sudo vtysh -c 'show daemons' 2>&1)",
    "clock": "date +%s",
    "lldp": "sudo lldpctl -f json",
    "links": "ip -j -d link show",
    "addresses": "ip -j address show",
    "port-speeds": "show interfaces status",
    "optics": "show interfaces transceiver eeprom -d",
    "optics-pm": "show interfaces transceiver pm",
    "fec": "show interfaces counters fec-stats",
    "port-counters": "show interfaces counters",
    "config": "sudo vtysh -c 'show running-config no-header'",
    "config-db": "sudo sonic-cfggen -d --print-data",
    "pfc": "show pfc counters",
    "queues": "queuestat -j",
    "watchdog": "show pfcwd config",
    # user watermarks: the most since somebody cleared them
    "headroom-watermark": "show priority-group watermark headroom",
    "queue-watermark": "show queue watermark unicast",
    "headroom-pool-watermark": "show headroom-pool watermark",
    "pool-watermark": "show buffer_pool watermark",
    "counterpoll": "sudo counterpoll show",
}

_SONIC_CLI = {
    "version": "show version",
    # `show lldp table` cuts names off after 20 characters
    "lldp": "show lldp neighbor",
    "port-speeds": "show interface status",
    "bgp": "show bgp ipv4 unicast summary\nshow bgp l2vpn evpn summary",
    "pfc": "show qos interface Ethernet all priority-flow-control statistics",
    "optics": "show interface transceiver dom",
}

DIALECTS: MappingProxyType[str, MappingProxyType[str, str]] = MappingProxyType(
    {
        LINUX: MappingProxyType(_LINUX | {name: f"vtysh -c '{line}'" for name, line in _FRR.items()}),
        SONIC: MappingProxyType(_SONIC | {name: f"sudo vtysh -c '{line}'" for name, line in _FRR.items()}),
        SONIC_CLI: MappingProxyType(_SONIC_CLI),
    }
)


# what one vtysh can be asked together: questions with JSON for an answer, then the one without
TOGETHER = _FRR
LAST = ("config", "show running-config no-header")


def command_for(dialect: str, question: str) -> str:
    """Return the command, empty when the dialect has none for the question."""
    return DIALECTS[dialect].get(question, "")
