#!/bin/sh
# gw-01: interfaces, VRFs, tunnels and policy routes of a gateway, written by kvfabric.
# The ports must exist under these names. Running it again changes nothing.
set -eu
links=" $(command ip -o link show | while read -r _ link _; do printf '%s ' "${link%%[@:]*}"; done)"
have() { case "$links" in *" $1 "*) return 0 ;; esac; return 1; }
rule() { [ -n "$(command ip rule show "$@")" ]; }
# each ip line below is queued and all run in one process at the end: many forks make a small machine slow to start
queue=''
ip() { queue="$queue$*
"; }

# addresses of a VRF are looked up in that VRF: the local table comes after the VRF rule (pref 1000), so that nobody
# outside or in a tenant reaches an address of the fabric
rule pref 32765 || ip rule add pref 32765 lookup local
! rule pref 0 || ip rule del pref 0

ip link set lo up
ip addr replace 172.30.8.1/32 dev lo
ip addr replace 172.30.12.1/32 dev lo

# to leaf-01
ip link set in0 mtu 9100 up
ip addr replace 172.30.20.1/31 dev in0

# to leaf-02
ip link set in1 mtu 9100 up
ip addr replace 172.30.20.3/31 dev in1

# outside: a VRF of its own
have Vrf-edge || ip link add Vrf-edge type vrf table 999
ip link set Vrf-edge up
ip route replace unreachable default table 999 metric 4278198272
ip link set ex0 master Vrf-edge mtu 1500 up
ip addr replace 172.30.16.1/31 dev ex0

# tenant acme: packet mark and conntrack zone 1
have Vrf-acme || ip link add Vrf-acme type vrf table 1001
ip link set Vrf-acme up
ip addr replace 192.0.0.8/32 dev Vrf-acme
have br100 || ip link add br100 type bridge forward_delay 0
ip link set br100 address 02:00:f7:7e:99:f9 addrgenmode none
ip link set br100 master Vrf-acme
have vx100 || ip link add vx100 type vxlan id 100 local 172.30.12.1 dstport 4789 nolearning tos inherit
ip link set vx100 master br100 addrgenmode none
ip link set vx100 type bridge_slave learning off neigh_suppress on
ip link set vx100 mtu 9036 up
ip link set br100 mtu 9036 up
ip route replace unreachable default table 1001 metric 4278198272
ip route replace unreachable 10.0.0.0/8 table 1001 metric 4278198272
ip route replace unreachable 100.64.0.0/10 table 1001 metric 4278198272
ip route replace unreachable 169.254.0.0/16 table 1001 metric 4278198272
ip route replace unreachable 172.16.0.0/12 table 1001 metric 4278198272
ip route replace unreachable 192.168.0.0/16 table 1001 metric 4278198272
rule pref 499 fwmark 1073741825 || ip rule add pref 499 fwmark 1073741825 lookup 100001
rule pref 500 fwmark 1 || ip rule add pref 500 iif Vrf-edge fwmark 1 lookup 1001
rule pref 501 fwmark 1 || ip rule add pref 501 iif lo fwmark 1 lookup 1001

# tenant globex: packet mark and conntrack zone 2
have Vrf-globex || ip link add Vrf-globex type vrf table 1002
ip link set Vrf-globex up
ip addr replace 192.0.0.8/32 dev Vrf-globex
have br200 || ip link add br200 type bridge forward_delay 0
ip link set br200 address 02:00:f7:7e:99:f9 addrgenmode none
ip link set br200 master Vrf-globex
have vx200 || ip link add vx200 type vxlan id 200 local 172.30.12.1 dstport 4789 nolearning tos inherit
ip link set vx200 master br200 addrgenmode none
ip link set vx200 type bridge_slave learning off neigh_suppress on
ip link set vx200 mtu 9036 up
ip link set br200 mtu 9036 up
ip route replace unreachable default table 1002 metric 4278198272
ip route replace unreachable 10.0.0.0/8 table 1002 metric 4278198272
ip route replace unreachable 100.64.0.0/10 table 1002 metric 4278198272
ip route replace unreachable 169.254.0.0/16 table 1002 metric 4278198272
ip route replace unreachable 172.16.0.0/12 table 1002 metric 4278198272
ip route replace unreachable 192.168.0.0/16 table 1002 metric 4278198272
rule pref 499 fwmark 1073741826 || ip rule add pref 499 fwmark 1073741826 lookup 100002
rule pref 500 fwmark 2 || ip rule add pref 500 iif Vrf-edge fwmark 2 lookup 1002
rule pref 501 fwmark 2 || ip rule add pref 501 iif lo fwmark 2 lookup 1002

# -force: what fails (a port that is missing) is reported, and does not keep the rest from being made
printf '%s' "$queue" | command ip -force -batch -
