#!/bin/sh
# Brings one node of a lab to life from its rendered files. It decides nothing: a missing file means that the node does
# not have that part. Whatever holds the node (a container, a set of namespaces) runs this inside it.
#   node.sh up        files into place, sysctls, network, firewall, Soft-RoCE, routing daemons, load balancer, LLDP
#   node.sh routing   only the routing daemons
#   node.sh lldp      only LLDP
#   node.sh hold      be the container's first process: wait, and reap what is left behind
# Lines on standard output that start with `! ` are complaints that did not stop it. Exit 1: the node is of no use, and
# standard error says why.
# KV_PORTS: all interfaces of the node; those that are not there are made without light. KV_RDMA: the interfaces that
# get a Soft-RoCE device. KV_MANAGEMENT: the interface that leads to the machine that runs the lab. KV_ROOT: stands
# before every path, for tests.
set -u
ROOT=${KV_ROOT:-}
FILES=$ROOT/etc/kvfabric
ETC=$ROOT/etc/frr
FRR=$ROOT/usr/lib/frr
LOG=$ROOT/var/log/frr
SBIN=$ROOT/usr/local/sbin

complain() { printf '! %s\n' "$1"; }
die() { printf '%s\n' "$1" >&2; exit 1; }

# programs (a first line #!, no suffix) go on the PATH, FRR's files where FRR looks for them
place() {
  # what the image brings is not this node's
  rm -f "$ETC/frr.conf" "$ETC/daemons" "$ETC/vtysh.conf"
  own="$ROOT/run/frr $ROOT/var/tmp/frr $ROOT/var/lib/frr $LOG"
  # shellcheck disable=SC2086  folders are words
  mkdir -p "$ETC" $own "$ROOT/run/haproxy" "$ROOT/run/lldpd" "$SBIN"
  for path in "$FILES"/*; do
    [ -f "$path" ] || continue
    case ${path##*/} in
      frr.conf | daemons | vtysh.conf) cp "$path" "$ETC" ;;
      *.*) ;;
      *)
        read -r first < "$path"
        case $first in '#!'*) cp "$path" "$SBIN" && chmod 755 "$SBIN/${path##*/}" ;; esac ;;
    esac
  done
  [ -e "$ETC/vtysh.conf" ] || echo 'service integrated-vtysh-config' > "$ETC/vtysh.conf"
  # shellcheck disable=SC2086  and an image without FRR has no such user
  chown -R frr:frr "$ETC" $own 2>/dev/null || true
}

# settings below net that a namespace has for itself; the others belong to the whole machine
sysctls() {
  [ -f "$FILES/sysctl.conf" ] || return 0
  mode=${1:-}
  # the first word of a line is the key, what follows the sign the value, and blanks around them are nobody's
  while IFS='=' read -r key value; do
    key=${key%%#*}
    [ -n "$value" ] && [ -n "$key" ] || continue
    old=$IFS IFS=' '
    set -f
    # shellcheck disable=SC2086  words
    set -- ${key#-}
    key=${1:-}
    # shellcheck disable=SC2086
    set -- ${value%%#*}
    value=$*
    case $key in */*) ;; *) IFS=.; set -- $key; IFS=/; key=$* ;; esac
    set +f
    IFS=$old
    case $key in
      net/core/* | net/netfilter/nf_conntrack_max | net/netfilter/nf_conntrack_buckets) continue ;;
      net/ipv[46]/neigh/default/gc_thresh*) continue ;;
      net/*) ;;
      *) continue ;;
    esac
    { echo "$value" > "$ROOT/proc/sys/$key"; } 2>/dev/null || [ "$mode" = quietly ] ||
      complain "sysctl $key=$value was refused"
  done < "$FILES/sysctl.conf"
}

# what a container has and a device has not: a way out through the machine that runs the lab
management() {
  [ -n "${KV_MANAGEMENT:-}" ] || return 0
  ip route del default dev "$KV_MANAGEMENT" 2>/dev/null
  ip -6 route del default dev "$KV_MANAGEMENT" 2>/dev/null
  return 0
}

dark_ports() {
  dark='' batch=''
  for port in ${KV_PORTS:-}; do
    [ ! -e "/sys/class/net/$port" ] || continue
    dark="$dark $port "
    batch="${batch}link add $port mtu 9216 type dummy
link set $port carrier off
"
  done
  [ -z "$dark" ] || printf '%s' "$batch" | ip -batch - || die "these ports cannot be made:$dark"
}

# a device file for each of our own RDMA devices: a container has none, and gets none of its neighbours'
verbs_files() {
  [ -d /sys/class/infiniband_verbs ] || return 0
  mkdir -p /dev/infiniband
  for entry in /sys/class/infiniband_verbs/uverbs*; do
    read -r device < "$entry/ibdev" && [ "$device" = "$1" ] || continue
    device_file "/dev/infiniband/${entry##*/}" "$entry/dev"
  done
  [ ! -r /sys/class/misc/rdma_cm/dev ] || device_file /dev/infiniband/rdma_cm /sys/class/misc/rdma_cm/dev
}

device_file() {
  IFS=: read -r major minor < "$2"
  [ -c "$1" ] || { mknod "$1" c "$major" "$minor" && chmod 666 "$1"; }
}

soft_roce() {
  read -r node < /proc/sys/kernel/hostname
  # a privileged container is given the device files of all neighbours that were there before it
  [ -z "${KV_MANAGEMENT:-}" ] || rm -f "$ROOT"/dev/infiniband/uverbs*
  for port in ${KV_RDMA:-}; do
    # the far end of a cable may come later, so light says nothing
    case $dark in *" $port "*) continue ;; esac
    if said=$(rdma link add "$node.$port" type rxe netdev "$port" 2>&1); then verbs_files "$node.$port"
    elif rdma dev show "$node.$port" >/dev/null 2>&1; then
      complain "no Soft-RoCE on $port: another lab of this kernel has a device $node.$port"
    else complain "no Soft-RoCE on $port: $said"
    fi
  done
}

routing() {
  [ -f "$FILES/frr.conf" ] || return 0
  bgpd=yes bfdd=yes staticd=yes
  if [ -f "$ETC/daemons" ]; then
    bgpd=no bfdd=no staticd=no
    . "$ETC/daemons"
  fi
  # in the order in which they need each other; the first two always run
  for daemon in mgmtd zebra staticd bfdd bgpd; do
    case $daemon in mgmtd | zebra) wanted=yes ;; *) eval "wanted=\$$daemon" ;; esac
    case $wanted in yes | true | 1) ;; *) continue ;; esac
    [ -x "$FRR/$daemon" ] || { [ $daemon = mgmtd ] && continue; die "$FRR/$daemon is not in this image"; }
    eval "options=\${${daemon}_options:--A 127.0.0.1}"
    # a daemon keeps the output it is given for as long as it lives, so it gets none of ours
    # shellcheck disable=SC2086  options are words
    "$FRR/$daemon" -d $options --log "file:$LOG/$daemon.log" </dev/null >/dev/null 2>&1 ||
      die "$daemon $options did not start (exit $?): $(tail -c 400 "$LOG/$daemon.log" 2>/dev/null)"
    # a switch has BFD in hardware; here a busy machine would miss three packets of 300 ms, and what falls makes it busier
    [ $daemon != bfdd ] || chrt --rr -a -p 10 "$(cat /run/frr/bfdd.pid)" 2>/dev/null
  done
  said=$(vtysh -b 2>&1)
  code=$?
  refused=
  while IFS= read -r line; do
    case $line in
      *'Graceful restart configuration changed'* | *'not installed currently'*) ;;
      %* | 'line '*': %'* | *'Configuration failed'* | *Malformed* | *'does not exist'* | *'Unknown command'* | \
        *'rror to communicate'*)
        refused=yes
        complain "frr.conf: $line" ;;
    esac
  done <<SAID
$said
SAID
  [ "$code" = 0 ] || [ -n "$refused" ] ||
    complain "frr.conf: vtysh exit $code: $(printf '%s' "$said" | tail -c 400 | tr '\n' ' ')"
}

# it calls itself and its ports what the plan calls them; a neighbour that falls silent is forgotten after 15 s
lldp() {
  pattern=
  for port in ${KV_PORTS:-}; do
    case ${dark:-} in *" $port "*) ;; *) pattern=$pattern${pattern:+,}$port ;; esac
  done
  [ -n "$pattern" ] && command -v lldpd >/dev/null || return 0
  read -r node < /proc/sys/kernel/hostname
  mkdir -p "$ROOT/run/lldpd"
  cat > "$ROOT/run/lldpd.conf" <<CONF
configure system hostname $node
configure system chassisid $node
configure system interface pattern $pattern
configure lldp portidsubtype ifname
configure lldp tx-interval 5
configure lldp tx-hold 3
CONF
  # a node is of use without it, and nobody waits for it
  lldpd -O "$ROOT/run/lldpd.conf" </dev/null >/dev/null 2>&1 &
}

up() {
  [ -d "$FILES" ] || die "$FILES: no rendered files here"
  management
  dark_ports
  place
  sysctls quietly
  if [ -f "$FILES/network.sh" ]; then
    # a container has its engine's default route, which is not the site's
    said=$(KVFABRIC_DEFAULT=replace sh -e "$FILES/network.sh" 2>&1) ||
      die "network.sh failed (exit $?): $(printf '%s' "$said" | tail -c 800)"
  fi
  sysctls
  if [ -f "$FILES/nftables.conf" ]; then
    said=$(nft -f "$FILES/nftables.conf" 2>&1) || die "nftables.conf was refused: $said"
  fi
  soft_roce
  routing
  if [ -f "$FILES/haproxy.cfg" ]; then
    said=$(haproxy -D -f "$FILES/haproxy.cfg" -p /run/haproxy/haproxy.pid 2>&1) || die "haproxy did not start: $said"
  fi
  lldp
}

case "${1:-}" in
  up) up ;;
  routing) routing ;;
  lldp) lldp ;;
  hold)
    trap 'exit 0' TERM INT
    while :; do sleep 3600 & wait $!; done ;;
  *) die "usage: node.sh up | routing | lldp | hold" ;;
esac
