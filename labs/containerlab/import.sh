#!/bin/sh
# Inside the VM, once: import the node image onto the disk, then leave the disk clean.
set -e
sh /opt/kvfabric/labs/containerlab/dockerd.sh
echo "Docker $(docker version --format '{{.Server.Version}}') is up"
docker import --change 'CMD ["sleep","infinity"]' /lab/node.tar "$1" > /dev/null
docker image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}'
kill "$(cat /run/dockerd.pid)"
while [ -e /run/dockerd.pid ]; do sleep 0.2; done
sync
umount /var/lib/docker
