#!/usr/bin/env bash
# Runs the checks of the collection, one section after the other, and stops at the first that fails.
#
#   check.sh lint | demo | test
#
# Called by the Makefile, which sets PATH, VENV and ANSIBLE_COLLECTIONS_PATH, and calls setup.sh before.
set -euo pipefail

what=${1:?usage: check.sh lint|demo|test}
top=$(cd "$(dirname "$0")/../.." && pwd -P)
: "${VENV:?run this through make}" "${ANSIBLE_COLLECTIONS_PATH:?run this through make}"
cd "$top"

# README.md says why these
FAST_SCENARIOS=(kube_nat)

current=start
work=$(mktemp -d)
section() {
    current=$1
    printf '\n=== %s\n' "$1"
}
on_exit() {
    local code=$?
    rm -rf "$work"
    [ "$code" = 0 ] || printf '\n=== FAILED (exit code %s): %s\n' "$code" "$current" >&2
}
trap on_exit EXIT

need_root() {
    [ "$(id -u)" = 0 ] && return
    printf 'This makes network namespaces and writes iptables rules inside them, which needs root.\n' >&2
    exit 1
}

# ---- sections ----

python_style() {
    ruff check --output-format concise .
}

python_types() {
    # by its name as a collection, so that mypy sees the imports as Ansible does
    (cd "$VENV/collections" && MYPYPATH=. mypy --config-file "$top/pyproject.toml" --cache-dir "$top/.mypy_cache" \
        -p ansible_collections.metal.nodenet.plugins)
}

node_python() {
    # what a node runs must run with its Python; a comparison of features, for there may be no 3.9 here
    vermin -q --no-tips -t=3.9- --violations plugins/module_utils plugins/modules \
        molecule/shared/files/packets.py molecule/shared/files/rules.py
}

playbook_lint() {
    # ansible-lint looks for Ansible's own commands, and for nothing on the network (offline in .ansible-lint)
    ansible-lint --nocolor
}

generated_docs() {
    # the tables of variables in the roles' pages, and the pages of modules and other plugins
    python tests/tools/role_docs.py --check
    python tests/tools/plugin_docs.py --check
}

build() {
    ansible-galaxy collection build --output-path "$work" .
    tar -tzf "$work"/*.tar.gz >"$work/files"
    if grep -E '^(\.git|\.ci|\.venv)(/|$)|__pycache__' "$work/files"; then
        echo 'the files above have no place in the collection: see build_ignore in galaxy.yml' >&2
        exit 1
    fi
    printf '%s files\n' "$(grep -vc '/$' "$work/files")"
}

# The built collection beside those that it depends on, in a folder with nothing else, as a user has it.
install() {
    local name
    for name in ansible.posix kubernetes.core; do
        mkdir -p "$work/user/ansible_collections/${name%.*}"
        cp -a "$VENV/collections/ansible_collections/${name/.//}" "$work/user/ansible_collections/${name%.*}"
    done
    as_user ansible-galaxy collection install --offline -p "$work/user" "$work"/metal-nodenet-*.tar.gz
    as_user ansible-galaxy collection verify --offline metal.nodenet
    as_user ansible-galaxy collection list
}

# A command that finds the built collection and cannot find this checkout.
as_user() {
    (cd "$work" && ANSIBLE_COLLECTIONS_PATH=$work/user ANSIBLE_COLLECTIONS_SCAN_SYS_PATH=false "$@")
}

documentation() {
    local type file name
    for type in module connection filter; do
        local folder=$type
        [ "$type" = module ] && folder=modules
        for file in plugins/"$folder"/*; do
            name=$(basename "${file%.*}")
            case $name in __init__ | __pycache__ | '*') continue ;; esac
            ansible-doc -t "$type" "metal.nodenet.$name" >/dev/null
            printf '%s %s\n' "$type" "metal.nodenet.$name"
        done
    done
}

reference_pages() {
    # every page as the documentation site of Ansible would have it: schema, markup, and that what is referred to exists
    antsibull-docs lint-collection-docs --plugin-docs --skip-rstcheck --validate-collection-refs=all \
        --disallow-unknown-collection-refs --check-extra-docs-refs .
    printf 'no fault in the pages\n'
}

changelog() {
    antsibull-changelog lint
    printf '%s fragments\n' "$(find changelogs/fragments -name '*.y*ml' | wc -l)"
}

# demo FOLDER PLAYBOOK: FOLDER has the inventory
demo() {
    need_root
    # YAML results read better than JSON, above all diffs and messages of several lines
    ANSIBLE_CALLBACK_RESULT_FORMAT=yaml ANSIBLE_LOCALHOST_WARNING=false \
        ansible-playbook -i "$1/demo_inventory.yml" "$2"
}

lint_sections() {
    section 'ruff: style and likely mistakes in the Python files'
    python_style
    section 'mypy: types in plugins/, strict'
    python_types
    section 'vermin: what runs on a node runs with Python 3.9'
    node_python
    section 'yamllint: style of the YAML files'
    yamllint --strict .
    section 'ansible-lint: playbooks, roles and metadata, profile "production"'
    playbook_lint
    section 'role_docs.py, plugin_docs.py: the generated pages are up to date'
    generated_docs
    section 'ansible-galaxy: the collection builds'
    build
    section 'ansible-galaxy: what was built installs beside what it depends on'
    install
    section 'ansible-doc: every plugin has a page'
    documentation
    section 'ansible-test: all sanity tests'
    tests/tools/sanity.sh
    section 'antsibull-docs: the pages of plugins and roles, strict'
    reference_pages
    section 'antsibull-changelog: the fragments'
    changelog
}

case $what in
    lint)
        lint_sections
        ;;
    demo)
        current='the demo'
        demo playbooks playbooks/demo.yml
        ;;
    test)
        need_root
        lint_sections
        section 'the demo, out of the built collection: plan, apply and remove, with real packets'
        as_user demo "$work/user/ansible_collections/metal/nodenet/playbooks" metal.nodenet.demo
        section 'molecule: the scenarios that a change breaks first, on containers'
        "$top/tests/tools/molecule.sh" "${FAST_SCENARIOS[@]}"
        section 'pytest: all tests'
        # as many at once as there are cores; who is done early takes from the others
        pytest -n auto --dist worksteal
        ;;
    *)
        printf 'unknown: %s\n' "$what" >&2
        exit 2
        ;;
esac
