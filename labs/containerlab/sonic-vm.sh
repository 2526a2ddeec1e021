#!/bin/sh
# Gives a SONiC VM its frr.conf: containerlab passes config_db.json alone. Runs in the container around the VM, waits
# until it has booted, and uses the login that containerlab gave it. Exit 1: it did not work, standard error says why.
# KV_ROOT: stands before every path, for tests.
set -u
ROOT=${KV_ROOT:-}
left=${KV_BOOT_SECONDS:-600}
until grep -q '^0' "$ROOT/health" 2>/dev/null; do
  left=$((left - 5))
  [ "$left" -gt 0 ] || { echo "the VM has not booted: $(cat "$ROOT/health" 2>&1)" >&2; exit 1; }
  sleep 5
done
# images forward the VM's port 22 to 2022 or, older ones, to 22
for port in 2022 22; do
  options="-o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
  file=$ROOT/etc/kvfabric/frr.conf
  # shellcheck disable=SC2086  options are words
  sshpass -p "$PASSWORD" scp $options -P $port "$file" "$USERNAME@127.0.0.1:/tmp/frr.conf" || continue
  # shellcheck disable=SC2086
  sshpass -p "$PASSWORD" ssh $options -p $port "$USERNAME@127.0.0.1" \
    "sudo install -m 640 -o 300 -g 300 /tmp/frr.conf /etc/sonic/frr/frr.conf && sudo systemctl restart bgp" && exit 0
done
echo "frr.conf could not be copied into the VM" >&2
exit 1
