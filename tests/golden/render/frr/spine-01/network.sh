#!/bin/sh
# spine-01: interfaces, VRFs and tunnels of a Linux router, written by kvfabric.
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
ip addr replace 172.30.8.5/32 dev lo

# underlay
ip link set Ethernet0 mtu 9100 up
ip link set Ethernet8 mtu 9100 up

# -force: what fails (a port that is missing) is reported, and does not keep the rest from being made
printf '%s' "$queue" | command ip -force -batch -
