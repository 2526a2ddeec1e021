#!/bin/sh
# leaf-01: interfaces, VRFs and tunnels of a Linux router, written by kvfabric.
# The ports must exist under these names. Running it again changes nothing.
set -eu
links=" $(command ip -o link show | while read -r _ link _; do printf '%s ' "${link%%[@:]*}"; done)"
have() { case "$links" in *" $1 "*) return 0 ;; esac; return 1; }
rule() { [ -n "$(command ip rule show "$@")" ]; }
# each ip line below is queued and all run in one process at the end: many forks make a small router slow to start
queue=''
ip() { queue="$queue$*
"; }

# a packet of a VRF looks for local addresses in that VRF: the table of our own comes after the VRF rule (pref 1000)
rule pref 32765 || ip rule add pref 32765 lookup local
! rule pref 0 || ip rule del pref 0

ip link set lo up
ip addr replace 172.30.8.3/32 dev lo
ip addr replace 172.30.12.3/32 dev lo

# underlay
ip link set Ethernet256 mtu 9100 up
ip link set Ethernet264 mtu 9100 up
ip link set Ethernet80 mtu 9100 up
ip addr replace 172.30.20.0/31 dev Ethernet80
ip link set Ethernet82 mtu 9100 up
ip addr replace 172.30.20.4/31 dev Ethernet82

# tenant acme: VRF, L3VNI bridge (no address, the router MAC) and VXLAN that copies the inner DSCP and ECN
have Vrf-acme || ip link add Vrf-acme type vrf table 13000
ip link set Vrf-acme up
ip route replace unreachable default table 13000 metric 4278198272
have Vlan3000 || ip link add Vlan3000 type bridge forward_delay 0
ip link set Vlan3000 address 02:a5:1c:c9:47:12 addrgenmode none
ip link set Vlan3000 master Vrf-acme
have vtep-3000 || ip link add vtep-3000 type vxlan id 100 local 172.30.12.3 dstport 4789 nolearning ttl 64 tos inherit
ip link set vtep-3000 master Vlan3000 addrgenmode none
ip link set vtep-3000 type bridge_slave learning off neigh_suppress on
ip link set vtep-3000 mtu 9036 up
ip link set Vlan3000 mtu 9036 up

# tenant globex: VRF, L3VNI bridge (no address, the router MAC) and VXLAN that copies the inner DSCP and ECN
have Vrf-globex || ip link add Vrf-globex type vrf table 13001
ip link set Vrf-globex up
ip route replace unreachable default table 13001 metric 4278198272
have Vlan3001 || ip link add Vlan3001 type bridge forward_delay 0
ip link set Vlan3001 address 02:a5:1c:c9:47:12 addrgenmode none
ip link set Vlan3001 master Vrf-globex
have vtep-3001 || ip link add vtep-3001 type vxlan id 200 local 172.30.12.3 dstport 4789 nolearning ttl 64 tos inherit
ip link set vtep-3001 master Vlan3001 addrgenmode none
ip link set vtep-3001 type bridge_slave learning off neigh_suppress on
ip link set vtep-3001 mtu 9036 up
ip link set Vlan3001 mtu 9036 up

# tenant storage: VRF, L3VNI bridge (no address, the router MAC) and VXLAN that copies the inner DSCP and ECN
have Vrf-storage || ip link add Vrf-storage type vrf table 13002
ip link set Vrf-storage up
ip route replace unreachable default table 13002 metric 4278198272
have Vlan3002 || ip link add Vlan3002 type bridge forward_delay 0
ip link set Vlan3002 address 02:a5:1c:c9:47:12 addrgenmode none
ip link set Vlan3002 master Vrf-storage
have vtep-3002 || ip link add vtep-3002 type vxlan id 300 local 172.30.12.3 dstport 4789 nolearning ttl 64 tos inherit
ip link set vtep-3002 master Vlan3002 addrgenmode none
ip link set vtep-3002 type bridge_slave learning off neigh_suppress on
ip link set vtep-3002 mtu 9036 up
ip link set Vlan3002 mtu 9036 up

# servers
ip link set Ethernet0 master Vrf-acme mtu 9036 up
ip addr replace 10.1.0.2/31 dev Ethernet0
ip link set Ethernet4 master Vrf-acme mtu 9036 up
ip addr replace 10.1.0.4/31 dev Ethernet4
ip link set Ethernet64 master Vrf-acme mtu 9036 up
ip addr replace 10.1.0.6/31 dev Ethernet64
ip link set Ethernet8 master Vrf-globex mtu 9036 up
ip addr replace 10.1.0.2/31 dev Ethernet8
ip link set Ethernet12 master Vrf-globex mtu 9036 up
ip addr replace 10.1.0.4/31 dev Ethernet12
ip link set Ethernet66 master Vrf-globex mtu 9036 up
ip addr replace 10.1.0.6/31 dev Ethernet66
ip link set Ethernet68 master Vrf-acme mtu 9036 up
ip addr replace 10.1.0.22/31 dev Ethernet68
ip link set Ethernet70 master Vrf-storage mtu 9036 up
ip addr replace 10.250.0.2/31 dev Ethernet70

# -force: what fails (a port that is missing) is reported, and does not keep the rest from being made
printf '%s' "$queue" | command ip -force -batch -
