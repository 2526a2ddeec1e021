#!/bin/sh
# compute-001: addresses and routes of a server, written by kvfabric.
# The ports must exist under these names; what a missing one does not need is made all the same. Running it again changes
# nothing. Exit 1: something is missing. A default route of others without a metric (of a management port) is kept, and said:
# put management into a VRF or give its route a metric; KVFABRIC_DEFAULT=replace takes its place.
set -eu
links=" $(command ip -o link show | while read -r _ link _; do printf '%s ' "${link%%[@:]*}"; done)"
have() { case "$links" in *" $1 "*) return 0 ;; esac; return 1; }
rule() { [ -n "$(command ip rule show "$@")" ]; }
# each ip line below is queued and all run in one process at the end: many forks make a small machine slow to start
queue='' kept=''
ip() { queue="$queue$*
"; }
ours=' be0-port0 be1-port0 fe-p0 fe-p1 '
# the port of a default route that is not ours and that ours would replace
theirs() {
  command ip route show default | while read -r route; do
    case " $route " in *' metric '*) continue ;; esac
    port=${route#* dev }
    case "$route" in *' dev '*) ;; *) continue ;; esac
    case "$ours" in *" ${port%% *} "*) ;; *) echo "${port%% *}"; break ;; esac
  done
}
# spread DESTINATION... -- GATEWAY,PORT...: a route over those of the ports that are there
spread() {
  way=''
  while [ "$1" != -- ]; do way="$way $1"; shift; done
  shift
  hops=''
  for hop; do have "${hop#*,}" && hops="$hops nexthop via ${hop%,*} dev ${hop#*,}"; done
  if [ "${way%% src*}" = ' default' ] && [ "${KVFABRIC_DEFAULT:-keep}" != replace ] && port=$(theirs) && [ -n "$port" ]; then
    echo "network.sh: the default route by $port is kept, so tenants' traffic leaves by it: see the head of $0" >&2
    kept=1
  elif [ -n "$hops" ]; then
    ip "route replace$way$hops"
  fi
}

ip link set lo up
# answers on 10.1.0.1 (acme, fabric), whichever of its ports is up
ip addr replace 10.1.0.1/32 dev lo

# be0-port0: acme in fabric; what is sent from its address leaves by it
ip link set be0-port0 mtu 9036 up
ip addr replace 10.1.0.3/31 dev be0-port0
ip route replace default via 10.1.0.2 dev be0-port0 src 10.1.0.3 table 100
rule pref 100 || ip rule add pref 100 from 10.1.0.3 lookup 100

# be1-port0: acme in fabric; what is sent from its address leaves by it
ip link set be1-port0 mtu 9036 up
ip addr replace 10.1.0.5/31 dev be1-port0
ip route replace default via 10.1.0.4 dev be1-port0 src 10.1.0.5 table 101
rule pref 101 || ip rule add pref 101 from 10.1.0.5 lookup 101

# fe-p0: acme in fabric; what is sent from its address leaves by it
ip link set fe-p0 mtu 9036 up
ip addr replace 10.1.0.7/31 dev fe-p0
ip route replace default via 10.1.0.6 dev fe-p0 src 10.1.0.7 table 102
rule pref 102 || ip rule add pref 102 from 10.1.0.7 lookup 102

# fe-p1: acme in fabric; what is sent from its address leaves by it
ip link set fe-p1 mtu 9036 up
ip addr replace 10.1.0.9/31 dev fe-p1
ip route replace default via 10.1.0.8 dev fe-p1 src 10.1.0.9 table 103
rule pref 103 || ip rule add pref 103 from 10.1.0.9 lookup 103

# everything else: from 10.1.0.1, over 2 ports
spread default src 10.1.0.1 -- 10.1.0.6,fe-p0 10.1.0.8,fe-p1

# -force: what fails (a port that is missing) is reported, and does not keep the rest from being made
printf '%s' "$queue" | command ip -force -batch -
[ -z "$kept" ]
