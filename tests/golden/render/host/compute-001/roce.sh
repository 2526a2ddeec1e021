#!/bin/sh
# compute-001: RoCE of the RDMA ports, written by kvfabric: the same DSCP, priority and PFC as the switches have.
#   roce.sh           set it
#   roce.sh --check   read it back; exit 1 when a port differs, 3 when no port could be read
# NVIDIA ports are set by mlnx_qos and sysfs where they are there, all others (and the rest) by iproute2's dcb.
# Soft-RoCE ports have no such hardware and are skipped.
set -u
DSCP=26           # of RDMA packets
TOS=106          # DSCP and ECN-capable, as the traffic class of RDMA connections
PRIORITY=3        # lossless
CNP_DSCP=48
CNP_PRIORITY=6
PFC=0,0,0,1,0,0,0,0
PORTS='be0-port0 be1-port0'
SYS="${KVFABRIC_SYS:-/sys}"

check=no
case "${1:-}" in
  --check) check=yes ;;
  '') ;;
  *) echo "usage: roce.sh [--check]" >&2; exit 2 ;;
esac
bad=0
seen=0
say() { echo "$1: $2"; }
fail() { say "$1" "$2"; bad=1; }
has() { command -v "$1" >/dev/null 2>&1; }

# the RDMA device of a port, from sysfs
rdma_of() {
  for device in "$SYS/class/net/$1/device/infiniband"/*; do
    [ -e "$device" ] && { echo "${device##*/}"; return; }
  done
}

# Soft-RoCE binds to a port without being a child of its PCI device
soft_of() {
  for device in "$SYS/class/infiniband"/*; do
    [ "$(cat "$device/parent" 2>/dev/null)" = "$1" ] && { echo "${device##*/}"; return; }
  done
}

# write FILE VALUE: through sysfs, where the driver has it
put() {
  if [ ! -w "$2" ]; then say "$1" "no ${2#"$SYS"/}, left to the driver's default"; return; fi
  echo "$3" > "$2" || fail "$1" "could not write $3 to $2"
}

want() {
  # want PORT WHAT EXPECTED GOT
  if [ "$3" = "$4" ]; then say "$1" "$2 is $4"; else fail "$1" "$2 is '$4', should be '$3'"; fi
}

set_mlnx() {
  mlnx_qos -i "$1" --trust dscp --pfc "$PFC" >/dev/null || fail "$1" "mlnx_qos refused trust or PFC"
  mlnx_qos -i "$1" --dscp2prio "set,$DSCP,$PRIORITY" >/dev/null || fail "$1" "mlnx_qos refused DSCP $DSCP"
  mlnx_qos -i "$1" --dscp2prio "set,$CNP_DSCP,$CNP_PRIORITY" >/dev/null || fail "$1" "mlnx_qos refused DSCP $CNP_DSCP"
}

set_dcb() {
  dcb pfc set dev "$1" prio-pfc all:off "$PRIORITY:on" || fail "$1" "dcb refused PFC"
  dcb app replace dev "$1" dscp-prio "$DSCP:$PRIORITY" "$CNP_DSCP:$CNP_PRIORITY" || fail "$1" "dcb refused the DSCP map"
}

set_rdma() {
  # connections made by rdma_cm, then those that exchange addresses by themselves
  if has cma_roce_tos; then cma_roce_tos -d "$2" -t "$TOS" >/dev/null || fail "$1" "cma_roce_tos refused $TOS"
  elif [ -d /sys/kernel/config/rdma_cm ]; then
    mkdir -p "/sys/kernel/config/rdma_cm/$2" && put "$1" "/sys/kernel/config/rdma_cm/$2/ports/1/default_roce_tos" "$TOS"
  else say "$1" "neither cma_roce_tos nor rdma_cm in configfs: set the traffic class $TOS in the application"
  fi
  put "$1" "$SYS/class/infiniband/$2/tc/1/traffic_class" "$TOS"
  put "$1" "$SYS/class/net/$1/ecn/roce_np/enable/$PRIORITY" 1
  put "$1" "$SYS/class/net/$1/ecn/roce_rp/enable/$PRIORITY" 1
  put "$1" "$SYS/class/net/$1/ecn/roce_np/cnp_dscp" "$CNP_DSCP"
  put "$1" "$SYS/class/net/$1/ecn/roce_np/cnp_802p_prio" "$CNP_PRIORITY"
}

check_mlnx() {
  text=$(mlnx_qos -i "$1")
  want "$1" trust dscp "$(echo "$text" | sed -n 's/^Priority trust state: *//p')"
  want "$1" PFC "$(echo "$PFC" | tr ',' ' ')" "$(echo "$text" | sed -n 's/^[[:space:]]*enabled[[:space:]]*//p' | tr -s ' \t' '  ' | sed 's/ *$//')"
}

check_dcb() {
  on=$(dcb pfc show dev "$1" prio-pfc | tr ' ' '\n' | sed -n 's/:on$//p' | tr '\n' ' ')
  want "$1" "PFC priorities" "$PRIORITY " "$on"
  map=" $(dcb app show dev "$1" dscp-prio | tr '\n' ' ') "
  for pair in "$DSCP:$PRIORITY" "$CNP_DSCP:$CNP_PRIORITY"; do
    case "$map" in *" $pair "*) say "$1" "DSCP map has $pair" ;; *) fail "$1" "DSCP map lacks $pair" ;; esac
  done
}

check_rdma() {
  file="$SYS/class/infiniband/$2/tc/1/traffic_class"
  [ -r "$file" ] && want "$1" "traffic class" "$TOS" "$(sed 's/.*=//' "$file" | tr -d ' ')"
  for side in np rp; do
    file="$SYS/class/net/$1/ecn/roce_$side/enable/$PRIORITY"
    [ -r "$file" ] && want "$1" "ECN $side" 1 "$(cat "$file")"
  done
}

for port in $PORTS; do
  if [ ! -e "$SYS/class/net/$port" ]; then fail "$port" "there is no such port"; continue; fi
  device=$(rdma_of "$port")
  soft=$(soft_of "$port")
  case "$soft" in
    "$device") ;;
    ?*) say "$port" "$soft is Soft-RoCE: no PFC and no classes to set; use traffic class $TOS in the application"; continue ;;
  esac
  if [ -z "$device" ]; then say "$port" "no RDMA device: skipped"; continue; fi
  if has mlnx_qos && case "$device" in mlx5_*) true ;; *) false ;; esac; then tool=mlnx
  elif has dcb; then tool=dcb
  else fail "$port" "$device: neither mlnx_qos nor dcb is installed, nothing set"; continue
  fi
  seen=1
  say "$port" "$device by $([ $tool = mlnx ] && echo mlnx_qos || echo dcb)"
  if [ $check = yes ]; then "check_$tool" "$port"; check_rdma "$port" "$device"
  else "set_$tool" "$port"; set_rdma "$port" "$device"
  fi
done
[ $bad = 0 ] || exit 1
[ $check = no ] || [ $seen = 1 ] || { echo "no port could be read" >&2; exit 3; }
