#!/bin/sh
# spine-01: puts these files where they belong, written by kvfabric. Running it again changes nothing.
#   install.sh           install; it takes effect at the next boot
#   install.sh --now     install, then load it: traffic may stop for a moment
#   install.sh --check   only compare; exit 1 when a file is missing or differs
# DESTDIR=DIR installs into the root of an image instead. A file that was there before is kept as FILE.before-kvfabric.
set -eu
from=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root="${DESTDIR:-}"
mode="${1:-install}"
case "$mode" in
  install | --check) ;;
  --now) [ -z "$root" ] || { echo "install.sh: nothing runs in $root: leave --now out" >&2; exit 2; } ;;
  *) echo "usage: [DESTDIR=DIR] install.sh [--now | --check]" >&2; exit 2 ;;
esac
if [ "$mode" != --check ] && [ -z "$root" ] && [ "$(id -u)" != 0 ]; then
  echo "install.sh: only root may install here; DESTDIR=DIR installs elsewhere" >&2
  exit 3
fi
if [ "$mode" != --check ] && [ -z "$root" ]; then
  missing=''
  for tool in ip vtysh; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
  [ -z "$missing" ] || { echo "install.sh: not on this machine:$missing (Debian: iproute2 frr frr-pythontools)" >&2; exit 3; }
fi

changed=''
# place MODE OWNER FILE TO
place() {
  to="$root$4"
  ! cmp -s "$from/$3" "$to" || return 0
  changed="$changed $3"
  if [ "$mode" = --check ]; then
    if [ -e "$to" ]; then echo "$to differs"; else echo "$to is missing"; fi
    return 0
  fi
  mkdir -p "$(dirname -- "$to")"
  if [ -e "$to" ] && [ ! -e "$to.before-kvfabric" ] && ! grep -q kvfabric "$to"; then
    cp -p "$to" "$to.before-kvfabric"
  fi
  cp "$from/$3" "$to.kvfabric-new"
  chmod "$1" "$to.kvfabric-new"
  if [ "$2" != root ] && getent passwd "$2" >/dev/null; then chown "$2:$2" "$to.kvfabric-new"; fi
  mv -f "$to.kvfabric-new" "$to"
  echo "$to installed"
}

place 0640 frr frr.conf /etc/frr/frr.conf
place 0640 frr daemons /etc/frr/daemons
place 0755 root network.sh /etc/kvfabric/network.sh
place 0644 root sysctl.conf /etc/kvfabric/sysctl.conf
place 0644 root kvfabric-network.service /etc/systemd/system/kvfabric-network.service
if [ "$mode" = --check ]; then
  [ -z "$changed" ] || exit 1
  echo "spine-01: everything is installed"
  exit 0
fi

if [ -n "$root" ]; then
  systemctl --root="$root" enable -q kvfabric-network.service
else
  systemctl daemon-reload
  systemctl enable -q kvfabric-network.service
fi
[ "$mode" = --now ] || exit 0

systemctl reload-or-restart kvfabric-network.service
# which daemons run is read when FRR starts; all else is loaded without losing a session
case " $changed " in *' daemons '*) systemctl restart frr ;; *) systemctl reload-or-restart frr ;; esac
