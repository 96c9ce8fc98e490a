#!/usr/bin/env bash
# Runs what may depend on a version with others than this machine's own:
#
#   the controller's code with the newest ansible-core and the Python of Debian 13: unit tests, tests of the plugins
#   through ansible-playbook, the demo. In a container without a network, whose packages are installed from outside.
#   what a node runs with the oldest Python and iptables, those of Debian 11: the scenario kube_nat.
#
#   NODENET_IMAGE_SOURCE           registry or debootstrap, see molecule/README.md
#
# Called by the Makefile, which sets PATH, VENV and ANSIBLE_COLLECTIONS_PATH, and calls setup.sh before.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd -P)
: "${VENV:?run this through make}"
here=/collections/ansible_collections/metal/nodenet
CONTROLLER_RELEASE=trixie NODE_RELEASE=bullseye

section() { printf '\n=== %s\n' "$1"; }

image() { mapfile -t image < <("$top/molecule/shared/image/build.sh" "$1"); [ "${#image[@]}" = 2 ]; }

# inside COMMAND: in a container with the packages and this checkout, which stays as it is
inside() {
    CONTAINERS_CONF=${image[1]} podman run --rm --privileged --network none --workdir "$here" \
        --volume "$top:$here:ro" --volume "$packages:/packages:ro" \
        --env PYTHONPATH=/packages:/collections --env ANSIBLE_COLLECTIONS_PATH=/collections --env LC_ALL=C.UTF-8 \
        --env PYTHONDONTWRITEBYTECODE=1 --env HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis \
        "${image[0]}" sh -c "$1"
}

# pip runs out here, where the network and its settings are, for the Python in there. It would hold its own version
# against what the packages ask for.
install_packages() {
    local version wanted
    version=$(inside 'python3 -c "import sys; print(\"%d.%d\" % sys.version_info[:2])"')
    wanted="ansible-core netaddr jmespath pytest pytest-xdist hypothesis PyYAML"
    rm -rf "$packages"
    mkdir -p "$packages"
    # shellcheck disable=SC2086
    python -m pip install --quiet --disable-pip-version-check --upgrade --target "$packages" \
        --python-version "$version" --only-binary :all: --ignore-requires-python $wanted
}

packages=$VENV/$CONTROLLER_RELEASE
mkdir -p "$packages"
image "$CONTROLLER_RELEASE"
section "the newest ansible-core on $CONTROLLER_RELEASE"
install_packages
inside 'python3 -m ansible playbook --version'
section 'unit tests, and the plugins through ansible-playbook'
inside 'python3 -m pytest -p no:cacheprovider -q -n 2 tests/unit/plugins tests/unit/source tests/unit/cluster \
    tests/integration/test_ansible.py tests/integration/test_netns_connection.py'
section 'the demo'
inside 'export ANSIBLE_CALLBACK_RESULT_FORMAT=yaml ANSIBLE_LOCALHOST_WARNING=false
python3 -m ansible playbook -i playbooks/demo_inventory.yml metal.nodenet.demo'
section "a node of $NODE_RELEASE"
NODENET_DEBIAN_RELEASE=$NODE_RELEASE "$top/tests/tools/molecule.sh" kube_nat
