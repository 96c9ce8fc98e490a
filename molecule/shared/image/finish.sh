#!/bin/sh
# What a node's image has on top of Debian packages. Runs inside of the image when it is made.
set -eu

# /proc/sys is read-only in a container. The part of it that belongs to the container's own network need not be, and a
# node sets it, also at boot; the rest, which is the machine's, stays read-only.
cat >/etc/systemd/system/own-proc-sys-net.service <<'UNIT'
[Unit]
Description=Make the sysctls of this container's own network writable
DefaultDependencies=no
Before=systemd-sysctl.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mount --bind /proc/sys/net /proc/sys/net
ExecStart=/bin/mount -o remount,bind,rw /proc/sys/net
[Install]
WantedBy=sysinit.target
UNIT
mkdir -p /etc/systemd/system/sysinit.target.wants
ln -sf ../own-proc-sys-net.service /etc/systemd/system/sysinit.target.wants/

# The network comes from outside, some time after the start, as from a slow switch: what is ordered after
# network-online.target waits for it here as it does on a node.
cat >/etc/systemd/system/wait-for-network.service <<'UNIT'
[Unit]
Description=Wait for the links that the machine of this container makes
DefaultDependencies=no
Before=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=60
ExecStart=/bin/sh -c 'until [ -e /run/network-is-there ]; do sleep 0.1; done'
UNIT
mkdir -p /etc/systemd/system/network-online.target.wants
ln -sf ../wait-for-network.service /etc/systemd/system/network-online.target.wants/

# nothing to wait for, and nobody logs in on a terminal
systemctl mask console-getty.service getty.target systemd-logind.service >/dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
