#!/usr/bin/env bash
# Makes the image of the nodes unless it is there. Prints two lines: its name, and the containers.conf that the engine
# needs, which is empty where its own settings will do.
#
#   build.sh RELEASE [LIST]     RELEASE: bullseye, bookworm, trixie
#                               LIST: a file of packages that only some scenario needs, for an image on top of that
#
#   NODENET_IMAGE_SOURCE        registry (default): docker.io/library/debian, or NODENET_BASE_IMAGE
#                               debootstrap: made here of Debian packages, where there is no registry
#   NODENET_DEBIAN_MIRROR       where debootstrap takes packages from (default: http://deb.debian.org/debian)
set -euo pipefail

release=${1:?usage: build.sh RELEASE [LIST]}
list=${2:-}
source=${NODENET_IMAGE_SOURCE:-registry}
here=$(cd "$(dirname "$0")" && pwd -P)
packages=$(tr '\n' ' ' <"$here/packages")
base=${NODENET_BASE_IMAGE:-docker.io/library/debian:$release}
content=$(cat "$here/packages" "$here/finish.sh" "$here/Containerfile" | sha256sum | cut -c1-12)
image=localhost/nodenet-node:$release-$source-$content${NODENET_BASE_IMAGE:+-$(sha256sum <<<"$base" | cut -c1-6)}
quirks=$here/containers.conf

die() { printf '%s\n' "$@" >&2; exit 1; }
try() { podman run --rm --network none "$1" true >/dev/null; }

# choose_engine IMAGE: sets CONTAINERS_CONF where containers do not run without it
choose_engine() {
    local first
    if ! first=$(try "$1" 2>&1); then
        CONTAINERS_CONF=$quirks try "$1" ||
            die "podman cannot run a container, neither with its own settings nor with $quirks. The first said:" "$first"
        export CONTAINERS_CONF=$quirks
    fi
}

# on_top_of IMAGE PACKAGES NEW
on_top_of() {
    podman build --quiet --network host --build-arg "BASE=$1" --build-arg "PACKAGES=$2" --tag "$3" "$here" >/dev/null
}

from_registry() {
    podman image exists "$base" || podman pull --quiet "$base" >/dev/null ||
        die "there is no $base: without a registry, set NODENET_IMAGE_SOURCE=debootstrap"
    choose_engine "$base"
    on_top_of "$base" "$packages" "$image"
}

from_packages() {
    local root
    root=$(mktemp -d)
    # shellcheck disable=SC2064  # the value of now
    trap "rm -rf '$root'" EXIT
    chmod 755 "$root"
    # shellcheck disable=SC2086  # no third argument where there is no mirror
    debootstrap --variant=minbase --include="$(tr ' ' , <<<"${packages% }")" "$release" "$root" \
        ${NODENET_DEBIAN_MIRROR:-} >"$root.log" 2>&1 || die "debootstrap failed:" "$(tail -n 20 "$root.log")"
    chroot "$root" sh -s <"$here/finish.sh" >&2
    tar -C "$root" --numeric-owner -cf - . | podman import --quiet --change CMD=/sbin/init - "$image" >/dev/null
    rm -f "$root.log"
}

[ "$(id -u)" = 0 ] || die "The scenarios make network namespaces of containers and link them, which needs root."
# one at a time, or two scenarios that start together make it twice
exec 9>/run/lock/nodenet-image
flock 9
if ! podman image exists "$image"; then
    case $source in
        registry) from_registry ;;
        debootstrap) from_packages ;;
        *) die "NODENET_IMAGE_SOURCE is '$source': it must be registry or debootstrap" ;;
    esac
fi
[ -n "${CONTAINERS_CONF:-}" ] || choose_engine "$image"
if [ -n "$list" ]; then
    more=$image-$(sha256sum <"$list" | cut -c1-6)
    podman image exists "$more" || on_top_of "$image" "$(tr '\n' ' ' <"$list")" "$more"
    image=$more
fi
printf '%s\n%s\n' "$image" "${CONTAINERS_CONF:-}"
