# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The netns connection with real namespaces and Ansible's own commands."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

# with the process's number, for tests of other processes run at the same time
BLUE, GREEN, LEFT = (f"nodenet-test-{name}-{os.getpid()}" for name in ("blue", "green", "left"))


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def namespaces() -> Iterator[None]:
    """Two namespaces with a veth pair between them."""
    remove()
    try:
        for name in (BLUE, GREEN):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "to-green", "netns", BLUE, "type", "veth", "peer", "name", "to-blue", "netns", GREEN)
        yield
    finally:
        remove()


def remove() -> None:
    for name in (BLUE, GREEN):
        if os.path.exists(f"/run/netns/{name}"):
            run("ip", "netns", "del", name)


def ansible(host: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One ad-hoc task on ``host``. Plain output: what the task printed."""
    extra = {"ansible_python_interpreter": sys.executable, **variables}
    argv = [sys.executable, "-m", "ansible", "adhoc", host, "-i", f"{host},", "-c", "metal.nodenet.netns"]
    return subprocess.run([*argv, "-e", json.dumps(extra), *arguments], capture_output=True, text=True, check=False)


def command(host: str, line: str, *arguments: str, **variables: str) -> str:
    done = ansible(host, "-m", "ansible.builtin.command", "-a", line, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("pipelining", ["true", "false"])
def test_ping(pipelining: str) -> None:
    done = ansible(BLUE, "-m", "ansible.builtin.ping", ansible_pipelining=pipelining)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"ping": "pong"' in done.stdout


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(("host", "own"), [(BLUE, "to-green"), (GREEN, "to-blue")], ids=["blue", "green"])
def test_a_host_has_the_interfaces_of_its_namespace_and_no_others(host: str, own: str) -> None:
    shown = command(host, "ip -json link").split(">>\n", 1)[1]
    assert sorted(link["ifname"] for link in json.loads(shown)) == ["lo", own]


@pytest.mark.usefixtures("namespaces")
def test_the_namespace_may_be_named_otherwise_than_the_host() -> None:
    assert "to-blue" in command("some-host", "ip link", ansible_netns_name=GREEN)
    assert "to-blue" in command("some-host", "ip link", ansible_host=GREEN)


@pytest.mark.usefixtures("namespaces")
def test_a_delegated_task_runs_in_the_namespace_of_the_host_it_is_delegated_to(tmp_path: pathlib.Path) -> None:
    playbook = tmp_path / "play.yml"
    playbook.write_text(
        f"""
- hosts: {BLUE}
  gather_facts: false
  tasks:
    - ansible.builtin.command: ip link
      delegate_to: {GREEN}
      register: links
    - ansible.builtin.assert:
        that: "'to-blue' in links.stdout"
"""
    )
    argv = [sys.executable, "-m", "ansible", "playbook", "-i", f"{BLUE},{GREEN}", "-c", "metal.nodenet.netns"]
    extra = json.dumps({"ansible_python_interpreter": sys.executable})
    done = subprocess.run([*argv, "-e", extra, str(playbook)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("namespaces")
def test_a_file_is_copied_on_the_controller(tmp_path: pathlib.Path) -> None:
    target = tmp_path / "copied"
    done = ansible(BLUE, "-m", "ansible.builtin.copy", "-a", f"content=hello dest={target} mode=0600")
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.read_text() == "hello"


@pytest.mark.usefixtures("namespaces")
def test_become_is_another_user_in_the_same_namespace() -> None:
    become = ("--become", "--become-method", "su", "--become-user", "nobody")
    flags = {"ansible_become_flags": "-s /bin/sh", "ansible_remote_tmp": "/tmp", "ansible_pipelining": "true"}
    interpreter = {"ansible_python_interpreter": "/usr/bin/python3"}  # one that nobody may run
    shown = command(BLUE, "sh -c 'id -un; ip -o link'", *become, **flags, **interpreter)
    assert "nobody" in shown
    assert "to-green" in shown


@pytest.mark.usefixtures("namespaces")
def test_the_exit_code_of_a_command_is_its_own() -> None:
    done = ansible(BLUE, "-m", "ansible.builtin.command", "-a", "sh -c 'exit 255'")
    assert "FAILED" in done.stdout
    assert "rc=255" in done.stdout
    assert "UNREACHABLE" not in done.stdout


def test_a_namespace_that_does_not_exist_is_unreachable() -> None:
    done = ansible("nodenet-test-none", "-m", "ansible.builtin.ping")
    assert "UNREACHABLE" in done.stdout
    assert "There is no network namespace 'nodenet-test-none'" in done.stdout


def test_what_is_left_of_a_namespace_is_unreachable() -> None:
    """A file under /run/netns that is no namespace: what a reboot of a container may leave."""
    left = pathlib.Path("/run/netns", LEFT)
    left.parent.mkdir(exist_ok=True)
    left.touch()
    try:
        done = ansible(left.name, "-m", "ansible.builtin.ping")
    finally:
        left.unlink()
    assert "UNREACHABLE" in done.stdout
    assert f"Cannot enter the network namespace '{LEFT}'" in done.stdout


@pytest.mark.parametrize("name", ["../net", "-all", "a b", "a;id"])
def test_a_name_with_odd_characters_is_refused(name: str) -> None:
    done = ansible("some-host", "-m", "ansible.builtin.ping", ansible_netns_name=name)
    assert "UNREACHABLE" in done.stdout
    assert "cannot be the name of a network namespace" in done.stdout
