#!/usr/bin/env bash
# Runs "ansible-test sanity" on this checkout, all tests that there are.
#
# ansible-test wants a path that ends in ansible_collections/metal/nodenet and a git repository, so it gets a copy of
# what git would add. The virtual environments of its tests are kept in $VENV/ansible-test for the next run.
#
# Called by check.sh, with PATH and VENV of the Makefile.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd -P)
: "${VENV:?run this through make}"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
collection=$copy/ansible_collections/metal/nodenet

# ansible-test makes its environments without pip and then looks for a script on its own server. pip comes with Python,
# and the next line of the script, wherever it is from, is ours to write.
offline_pip() {
    local cache=$HOME/.ansible/test/cache version
    version=$(python -c 'import inspect, re; from ansible_test._internal.python_requirements import get_venv_packages
print(re.search(r"pip=.([\d.]+)", inspect.getsource(get_venv_packages))[1].replace(".", "_"))')
    mkdir -p "$cache"
    printf 'import ensurepip\n\nensurepip.bootstrap()\n' >"$cache/get_pip_$version.py"
}

mkdir -p "$collection"
cd "$top"
git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
    # one that is deleted and not yet committed is still listed
    [ ! -e "$file" ] || printf '%s\0' "$file"
done | xargs -0 cp --parents -P -t "$collection"
cd "$collection"
git init --quiet
git add --all

export HOME=$VENV/ansible-test
export ANSIBLE_COLLECTIONS_PATH=$copy
offline_pip
version=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
printf 'not here: pslint has nothing to look at, there is no PowerShell; compile and import are of Python %s,\n' "$version"
printf 'and for the 3.9 of a node vermin looks at the code, and the scenarios on bullseye run it\n'
command -v shellcheck >/dev/null || { echo 'there is no shellcheck' >&2; exit 1; }
ansible-test sanity --color no --requirements --python "$version" "$@"
