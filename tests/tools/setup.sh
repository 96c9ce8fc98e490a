#!/bin/sh
# Installs what "make demo", "make bench", "make lint" and "make test" need, and nothing that is there already.
#
#   setup.sh demo | bench | lint | test | clean
#
# Debian packages are asked for only where a command is missing; Python packages go into the virtual environment
# $VENV, other collections beside them, out of the PyPI package ansible; a symlink there makes this checkout the
# collection metal.nodenet, wherever it is.
set -eu

what=${1:?usage: setup.sh demo|bench|lint|test|clean}
top=$(cd "$(dirname "$0")/../.." && pwd -P)
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
PYTHON=${PYTHON:-python3}
VENV=${VENV:-$top/.venv}
case $VENV in /*) ;; *) VENV=$top/$VENV ;; esac
stamp=$VENV/.nodenet-requirements

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$@" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

clean() {
    if [ -e "$VENV" ] && [ ! -e "$stamp" ]; then
        die "$VENV was not made by this script (it has no $(basename "$stamp")): remove it yourself"
    fi
    if [ "$(id -u)" = 0 ] && has podman; then
        # of scenarios that were interrupted; images stay, other checkouts use them too
        checkout=$(printf %s "$top" | sha1sum | cut -c1-6)
        podman ps --all --quiet --filter "label=metal.nodenet=$checkout" | xargs -r podman rm --force --time 0
    fi
    rm -rf "$VENV" "$top/.mypy_cache" "$top/.pytest_cache" "$top/.ruff_cache" "$top/.hypothesis" "$top/.ansible"
    find "$top" -name __pycache__ -type d -prune -exec rm -rf {} +
}

check_python() {
    has "$PYTHON" || die "there is no '$PYTHON'. Python 3.11 or newer is needed (Debian 12: apt-get install python3)," \
        "or name one: make $what PYTHON=/path/to/python3.11"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$PYTHON is $("$PYTHON" -V 2>&1), and ansible-core 2.19 needs Python 3.11 or newer on the controller." \
            "Name another one: make $what PYTHON=/path/to/python3.11"
}

# missing_packages: prints the Debian packages whose commands are not there
missing_packages() {
    if [ ! -x "$VENV/bin/pip" ]; then
        # Debian has venv in a package of its own; other builds of Python bring it
        "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    fi
    # command:package
    world="ip:iproute2 iptables:iptables"
    checks="git:git shellcheck:shellcheck"
    # runc: for machines where crun, which podman brings, does not run
    nodes="ipset:ipset conntrack:conntrack nfacct:nfacct nft:nftables sysctl:procps podman:podman runc:runc"
    [ "${NODENET_IMAGE_SOURCE:-registry}" = registry ] || nodes="$nodes debootstrap:debootstrap"
    case $what in
        demo) pairs=$world ;;
        bench) pairs="$world sysctl:procps" ;;
        lint) pairs=$checks ;;
        *) pairs="$world $checks $nodes" ;;
    esac
    for pair in $pairs; do
        has "${pair%%:*}" || echo "${pair#*:}"
    done
}

why() {
    case $1 in
        python3-venv) echo "makes the virtual environment $VENV" ;;
        git) echo "tells which files belong to the checkout, for ansible-test" ;;
        shellcheck) echo "looks at shell scripts, for ansible-test" ;;
        iproute2) echo "the command ip: network namespaces" ;;
        iptables) echo "the commands iptables-save and iptables-restore" ;;
        ipset) echo "the command ipset: sets of addresses" ;;
        conntrack) echo "the command conntrack: makes and shows flows, in tests" ;;
        nfacct) echo "the command nfacct: counters that kube-proxy 1.36 uses" ;;
        nftables) echo "the command nft: tables that iptables did not write, in tests" ;;
        procps) echo "the command sysctl: forwarding in test nodes" ;;
        podman) echo "containers as test nodes" ;;
        runc) echo "runs containers where crun cannot" ;;
        debootstrap) echo "makes the image of the test nodes, where there is no registry" ;;
    esac
}

install_packages() {
    packages=$(missing_packages)
    [ -n "$packages" ] || return 0
    say "these Debian packages are missing and will be installed with apt-get:"
    for package in $packages; do
        say "  $package ($(why "$package"))"
    done
    has apt-get || die "there is no apt-get here: install them in this system's own way, then run make again"
    [ "$(id -u)" = 0 ] || die "that needs root: run make as root, or install them first"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # the words are package names, to be split
    # shellcheck disable=SC2086
    apt-get install -q -y --no-install-recommends $packages
}

install_requirements() {
    files=$top/requirements.txt
    case $what in demo | bench) ;; *) files="$files $top/tests/requirements.txt" ;; esac
    # shellcheck disable=SC2086
    wanted=$(cat $files)
    if [ -e "$stamp" ]; then
        have=$(cat "$stamp")
        # an environment for the tests is one for the demo and the bench too
        case $have in "$wanted"*) return 0 ;; esac
    fi
    if [ ! -x "$VENV/bin/pip" ]; then
        say "making the virtual environment $VENV with $("$PYTHON" -V)"
        "$PYTHON" -m venv "$VENV"
        : >"$stamp"
    fi
    say "installing the Python packages of$(for file in $files; do printf ' %s' "${file#"$top"/}"; done)"
    for file in $files; do set -- "$@" -r "$file"; done
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    printf '%s\n' "$wanted" >"$stamp"
}

# Other collections, of the versions that belong to the installed ansible-core: package 12 to core 2.19, 13 to 2.20, ...
install_collections() {
    case $what in demo | bench) return 0 ;; esac
    wanted_collections=$top/tests/requirements.yml
    installed=$VENV/collections/.nodenet-collections
    core=$("$VENV/bin/python" -c 'from ansible.release import __version__; print(__version__.split(".")[1])')
    wanted=$(echo "# ansible-core 2.$core" && cat "$wanted_collections")
    [ "$(cat "$installed" 2>/dev/null)" != "$wanted" ] || return 0
    say "installing the collections of ${wanted_collections#"$top"/}"
    package=$(mktemp -d)
    "$VENV/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$package" "ansible==$((core - 7)).*"
    "$VENV/bin/python" "$top/tests/tools/unpack_collections.py" "$wanted_collections" "$package"/ansible-*.whl \
        "$VENV/collections"
    rm -rf "$package"
    printf '%s\n' "$wanted" >"$installed"
}

# Both as Ansible finds a collection (ANSIBLE_COLLECTIONS_PATH=$VENV/collections) and as Python finds a package.
link_collection() {
    link=$VENV/collections/ansible_collections/metal/nodenet
    if [ "$(readlink "$link" 2>/dev/null)" != "$top" ]; then
        mkdir -p "$(dirname "$link")"
        ln -sfn "$top" "$link"
    fi
    site=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "$VENV/collections" >"$site/metal_nodenet.pth"
}

case $what in
    clean) clean ;;
    demo | bench | lint | test)
        check_python
        install_packages
        install_requirements
        install_collections
        link_collection
        ;;
    *) die "unknown: $what" ;;
esac
