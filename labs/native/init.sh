#!/bin/sh
# First steps of the native machine, in namespaces of its own: our Debian root, writable in memory, then the agent.
mount -t tmpfs -o size=75% lab "$LAB_ROOT"
cd "$LAB_ROOT"
mkdir upper work root
# mount options cannot hold every path of a host: blanks are well, commas and colons are not
ln -s "$LAB_LOWER" lower
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work root root
cd root
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sys sys
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs run run
mkdir -p run/netns run/lock run/lab
mount --bind "$LAB_SHARE" lab
mount --bind "$LAB_CODE" mnt/code
mount -o remount,bind,ro mnt/code
for package in labs fabric validators; do ln -sfn "/mnt/code/$package" "opt/kvfabric/$package"; done
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
ip link set lo up
hostname lab
# from here on the share is where every node sees it
export LAB_SHARE=/lab PYTHONPATH=/opt/kvfabric PYTHONDONTWRITEBYTECODE=1
exec python3 -m labs.agent "$LAB_CHANNEL"
