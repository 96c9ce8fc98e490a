# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network namespace of the controller as an Ansible host."""

from __future__ import annotations

DOCUMENTATION = r"""
name: netns
short_description: Run tasks in a network namespace of the controller
description:
  - Makes a named network namespace of the controller an Ansible host. Every command of a task runs in that namespace,
    through C(ip netns exec).
  - A namespace has its own interfaces, addresses, routes, iptables rules, sets and connection tracking, and shares
    everything else with the controller. That is enough to try and to test what this collection does, without a
    container engine or a virtual machine.
  - Files, processes and users are those of the controller. Copying a file to the host copies it on the controller.
author:
  - the metal.nodenet authors (@metal-nodenet)
version_added: 0.1.0
options:
  netns:
    description:
      - Name of the network namespace, as C(ip netns list) shows it.
      - Letters, digits, and the characters C(.), C(_) and C(-), the first one a letter, a digit or C(_).
    type: str
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
      - name: ansible_netns_name
  ip_executable:
    description:
      - The C(ip) command of iproute2, as a path, or as a name that is looked up in E(PATH) and then in C(/usr/sbin)
        and C(/sbin).
    type: str
    default: ip
    vars:
      - name: ansible_netns_ip_executable
  become_success_timeout:
    description:
      - Seconds to wait for become to succeed. The default is used if the value is less than 1.
    type: int
    default: 10
    vars:
      - name: ansible_netns_become_success_timeout
  become_strip_preamble:
    description:
      - Strip what become prints before the command runs. Disable it to see more when become fails.
    type: bool
    default: true
    vars:
      - name: ansible_netns_become_strip_preamble
extends_documentation_fragment:
  - connection_pipelining
notes:
  - Entering a namespace needs root, so C(ansible) itself must run as root. With become, a task gets into the namespace
    first and becomes the other user there.
  - The remote user is ignored, as with the connection plugin P(ansible.builtin.local#connection).
  - The plugin makes no namespaces. C(ip netns add) does.
seealso:
  - plugin: ansible.builtin.local
    plugin_type: connection
    description: The same without a namespace. This plugin is built on it.
"""

EXAMPLES = r"""
# An inventory of two network namespaces, named as the hosts are.
all:
  vars:
    ansible_connection: metal.nodenet.netns
    # the Python that runs Ansible is there, in every namespace
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  hosts:
    node-1:
    node-2:
      ansible_netns_name: second-node # or named otherwise
"""

import os
import re
import shlex
import shutil
import subprocess

import ansible.constants as C
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

#: Where iproute2 keeps a file for each named namespace.
NETNS_DIR = "/run/netns"

#: What a name may be: one file name, no option of a command, nothing that a shell sees as more than a word.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")


class Connection(LocalConnection):
    """The local connection, with each command inside a network namespace."""

    transport = "metal.nodenet.netns"
    has_pipelining = True

    def _connect(self) -> Connection:
        if not self._connected:
            self._enter = [*self._ip_netns(), "exec", self._existing_namespace()]
            self._try_to_enter()
        super()._connect()
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command line, which become may have wrapped already, inside the namespace."""
        self._connect()
        shell = C.DEFAULT_EXECUTABLE or "/bin/sh"
        result: tuple[int, bytes, bytes] = super().exec_command(
            shlex.join([*self._enter, shell, "-c", cmd]), in_data=in_data, sudoable=sudoable
        )
        return result

    def _ip_netns(self) -> list[str]:
        name = self.get_option("ip_executable")
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
        found = shutil.which(name, path=path)
        if found is None:
            raise AnsibleConnectionFailure(
                f"There is no executable {name!r} on the controller. The netns connection needs the command ip "
                "of iproute2 (option ip_executable)."
            )
        return [found, "netns"]

    def _existing_namespace(self) -> str:
        name: str = self.get_option("netns")
        if not _NAME.fullmatch(name):
            raise AnsibleConnectionFailure(
                f"{name!r} cannot be the name of a network namespace: letters, digits, '.', '_' and '-' are allowed, "
                "the first one a letter, a digit or '_' (option netns)."
            )
        if not os.path.exists(os.path.join(NETNS_DIR, name)):
            raise AnsibleConnectionFailure(
                f"There is no network namespace {name!r} on the controller (no {NETNS_DIR}/{name}). "
                f"Make it with: ip netns add {name}"
            )
        return name

    def _try_to_enter(self) -> None:
        """Find out now whether the namespace can be entered, so that later failures are those of the commands."""
        try:
            tried = subprocess.run([*self._enter, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   check=False)
        except OSError as error:
            raise AnsibleConnectionFailure(f"{self._enter[0]} does not run: {error}") from error
        if tried.returncode != 0:
            hint = "" if os.geteuid() == 0 else " (entering a network namespace needs root on the controller)"
            raise AnsibleConnectionFailure(
                f"Cannot enter the network namespace {self._enter[-1]!r}: "
                f"{tried.stderr.strip() or f'exit code {tried.returncode}'}{hint}"
            )
