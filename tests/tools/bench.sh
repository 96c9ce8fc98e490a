#!/usr/bin/env bash
# Measures one thing after the other; docs/performance.md says what the figures mean. Nothing else should be running.
#
#   bench.sh [NAME ...]     files of tests/bench; all but batches, which needs other versions of the tools
#
# Called by the Makefile, which sets PATH and ANSIBLE_COLLECTIONS_PATH, and calls setup.sh before.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd -P)
cd "$top"
: "${ANSIBLE_COLLECTIONS_PATH:?run this through make}"
[ $# != 0 ] || set -- payload render kernel no_gap fleet

if [ "$(id -u)" != 0 ]; then
    printf 'This makes network namespaces and writes iptables rules inside them, which needs root.\n' >&2
    exit 1
fi
printf '%s cores, %s, load %s, Debian %s, %s\n' "$(nproc)" "$(uname -sr)" "$(cut -d' ' -f1 /proc/loadavg)" \
    "$(cat /etc/debian_version 2>/dev/null || echo none)" "$(iptables-nft --version)"
for name in "$@"; do
    printf '\n=== %s\n' "$name"
    python "tests/bench/$name.py"
done
