#!/bin/sh
# Inside the VM: the disk, then a real Docker engine with its default rules and bridges. Returns when it answers.
set -e
[ -S /run/docker.sock ] && docker version > /dev/null 2>&1 && exit 0
mkdir -p /var/lib/docker /run/docker /run/containerd /dev/mqueue
grep -q ' /dev/mqueue ' /proc/mounts || mount -t mqueue mqueue /dev/mqueue
mount /dev/ubda /var/lib/docker
mount --make-rshared /
# containerlab and iptables ask which modules there are; all of them are built in
modules=/usr/lib/modules/$(uname -r)
mkdir -p "$modules"
cp /lab/modules/modules.builtin /lab/modules/modules.builtin.modinfo "$modules"
: > "$modules/modules.order"
depmod
containerd --log-level warn > /lab/containerd.log 2>&1 &
dockerd --containerd /run/containerd/containerd.sock --storage-driver overlay2 \
  --pidfile /run/dockerd.pid > /lab/dockerd.log 2>&1 &
engine=$!
for _ in $(seq 300); do
  [ -S /run/docker.sock ] && docker version > /dev/null 2>&1 && exit 0
  kill -0 $engine 2> /dev/null || { echo "dockerd ended:"; tail -n 5 /lab/dockerd.log; exit 1; }
  sleep 0.2
done
echo "dockerd did not answer within a minute"
exit 1
