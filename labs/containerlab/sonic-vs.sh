#!/bin/sh
# Brings a docker-sonic-vs node up: its own start.sh has made the ports from the eth interfaces that it found, so this
# waits for it, loads our tables on top and starts the routing daemons, which the image leaves to its user.
# Lines that start with `! ` are complaints; exit 1: the node is of no use, and standard error says why.
# KV_ROOT: stands before every path, for tests.
set -u
ROOT=${KV_ROOT:-}
FILES=$ROOT/etc/kvfabric
ETC=$ROOT/etc/frr
FRR=$ROOT/usr/lib/frr
NET=$ROOT/sys/class/net
complain() { printf '! %s\n' "$1"; }
die() { printf '%s\n' "$1" >&2; exit 1; }

# only the port answers, never the wire that carries its frames: both see a request, and the faster one would win
for path in "$NET"/eth[1-9]*; do
  wire=${path##*/}
  ip link set "$wire" arp off
  sysctl -qw "net.ipv6.conf.$wire.disable_ipv6=1"
done

left=${KV_START_SECONDS:-120}
while ! supervisorctl status start.sh 2>/dev/null | grep -q EXITED; do
  left=$((left - 1))
  [ $left -gt 0 ] || die "start.sh of the image has not finished: $(supervisorctl status start.sh 2>&1)"
  sleep 1
done

sonic-cfggen -j "$FILES/config_db.json" --write-to-db || die "config_db.json was refused"
mkdir -p "$ETC"
cp "$FILES/frr.conf" "$ETC/frr.conf"
echo 'service integrated-vtysh-config' > "$ETC/vtysh.conf"
chown frr:frr "$ETC/frr.conf" "$ETC/vtysh.conf" 2>/dev/null || true
known=$(supervisorctl avail 2>/dev/null)
for program in fpmsyncd mgmtd zebra staticd bfdd bgpd; do
  case $known in
    *"$program"*) supervisorctl start "$program" >/dev/null ;;
    *) [ ! -x "$FRR/$program" ] || "$FRR/$program" -d -A 127.0.0.1 ;;
  esac
done
sleep 2
said=$(vtysh -b 2>&1) || complain "frr.conf: $(printf '%s' "$said" | tail -c 400 | tr '\n' ' ')"
for path in "$NET"/eth[1-9]*; do
  wire=${path##*/}
  port=Ethernet$((4 * (${wire#eth} - 1)))
  [ -e "$NET/$port" ] || complain "$wire has no port: the image did not make $port"
done
