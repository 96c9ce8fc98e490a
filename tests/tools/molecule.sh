#!/usr/bin/env bash
# Runs scenarios of molecule/ one after the other, all of them even if one fails, and says at the end which failed.
#
#   molecule.sh [SCENARIO ...]     all if none is named
#
#   NODENET_DEBIAN_RELEASE         one or more of bullseye, bookworm, trixie (default: bookworm)
#   NODENET_BACKEND                one or more of nft, legacy (default: nft)
#   NODENET_IMAGE_SOURCE           registry or debootstrap, see molecule/README.md
#
# Called by the Makefile, which sets PATH and ANSIBLE_COLLECTIONS_PATH, and calls setup.sh before.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd -P)
cd "$top"
: "${ANSIBLE_COLLECTIONS_PATH:?run this through make}"
releases=${NODENET_DEBIAN_RELEASE:-bookworm}
backends=${NODENET_BACKEND:-nft}
export MOLECULE_COMMAND_BORDERS=false

if [ $# = 0 ]; then
    for file in molecule/*/molecule.yml; do
        scenario=$(basename "$(dirname "$file")")
        # it is another name for one of the others
        [ "$scenario" = default ] || set -- "$@" "$scenario"
    done
fi
if [ "$(id -u)" != 0 ]; then
    printf 'This starts containers and links their networks, which needs root.\n' >&2
    exit 1
fi

report=()
failed=0
for release in $releases; do
    for backend in $backends; do
        for scenario in "$@"; do
            printf '\n=== %s on %s with %s\n' "$scenario" "$release" "$backend"
            started=$SECONDS
            result=passed
            NODENET_DEBIAN_RELEASE=$release NODENET_BACKEND=$backend molecule test --scenario-name "$scenario" || {
                result=FAILED
                failed=1
            }
            report+=("$(printf '%-6s %4s s  %s on %s with %s' \
                "$result" $((SECONDS - started)) "$scenario" "$release" "$backend")")
        done
    done
done
printf '\n'
printf '%s\n' "${report[@]}"
exit "$failed"
