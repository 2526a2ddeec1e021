#!/bin/sh
# The VM's first steps: a writable root over the read-only one, the usual mounts, then the agent as process 1.
share= ; pycache= ; layer= ; mode=shared
for word in $(cat /proc/cmdline); do
  case $word in
    lab.share=*) share=${word#lab.share=} ;;
    lab.pycache=*) pycache=${word#lab.pycache=} ;;
    lab.layer=*) layer=${word#lab.layer=} ;;
    lab.rdma=*) mode=${word#lab.rdma=} ;;
  esac
done
if [ ! -e /.writable ]; then
  mount -t tmpfs -o size=75% cow /mnt/cow
  mkdir /mnt/cow/upper /mnt/cow/work /mnt/cow/root /mnt/cow/layer
  lower=/
  # more programs than the root has, from a folder of their own (Docker, for the containerlab engine)
  [ -n "$layer" ] && mount -t hostfs -o "hostfs=$layer" none /mnt/cow/layer && lower=/mnt/cow/layer:/
  mount -t overlay -o lowerdir=$lower,upperdir=/mnt/cow/upper,workdir=/mnt/cow/work root /mnt/cow/root || exit 1
  : > /mnt/cow/root/.writable
  mkdir -p /mnt/cow/root/.old
  mount --move /mnt/code /mnt/cow/root/mnt/code
  umount /proc
  cd /mnt/cow/root && pivot_root . .old && exec chroot . sh -c 'mount -t proc proc /proc; exec sh /mnt/code/labs/uml/init.sh'
fi
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs shm /dev/shm
for link in fd:self/fd stdin:self/fd/0 stdout:self/fd/1 stderr:self/fd/2; do
  [ -e "/dev/${link%%:*}" ] || ln -s "/proc/${link#*:}" "/dev/${link%%:*}"
done
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs run /run
mkdir -p /run/netns /run/lock /run/lab
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
mount -t hostfs -o "hostfs=$share" none /lab
# bytecode is kept on the host: compiling it again at each boot costs half a second
[ -n "$pycache" ] && mkdir -p /mnt/pycache && mount -t hostfs -o "hostfs=$pycache" none /mnt/pycache && export PYTHONPYCACHEPREFIX=/mnt/pycache
# only our own packages: what is installed beside them on the host was made for another Python
for package in labs fabric validators; do ln -sfn /mnt/code/$package /opt/kvfabric/$package; done
export PYTHONPATH=/opt/kvfabric PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ip link set lo up
hostname lab
# every new namespace would else get gre0, tunl0 and friends
echo 2 > /proc/sys/net/core/fb_tunnels_only_for_init_net
echo 1 > /proc/sys/kernel/panic_on_oops 2>/dev/null
# perftest divides by the "cpu MHz" that this kernel does not print
[ -f /lab/cpuinfo ] && mount --bind /lab/cpuinfo /proc/cpuinfo
rdma system set netns "$mode" 2>/dev/null
exec python3 -m labs.agent /dev/ttyS0
