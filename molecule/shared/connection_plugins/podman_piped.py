# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containers.podman.podman with pipelining: one call of podman for a task instead of five, most of its time."""

from __future__ import annotations

DOCUMENTATION = r"""
name: podman_piped
short_description: Run tasks in a podman container, one exec each
description:
  - As P(containers.podman.podman#connection), and a module goes to its Python through standard input.
author:
  - the metal.nodenet authors
options:
  remote_addr:
    description: Name of the container.
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
  remote_user:
    description: User in the container.
    vars:
      - name: ansible_user
  podman_extra_args:
    description: Arguments for every call of podman.
    default: ""
    vars:
      - name: ansible_podman_extra_args
  podman_executable:
    description: The podman command.
    default: podman
    vars:
      - name: ansible_podman_executable
extends_documentation_fragment:
  - connection_pipelining
"""

from ansible_collections.containers.podman.plugins.connection.podman import Connection as PodmanConnection


class Connection(PodmanConnection):
    """The podman connection, with standard input where there is something for it."""

    transport = "podman_piped"
    has_pipelining = True

    def _connect(self):  # type: ignore[no-untyped-def]
        # without a mount of the container's files, which costs a call of podman: files are copied with podman cp
        self._connected = True

    def _podman(self, cmd, cmd_args=None, in_data=None, use_container_id=True):  # type: ignore[no-untyped-def]
        if in_data is not None and cmd[:1] == ["exec"]:
            cmd = ["exec", "--interactive", *cmd[1:]]
        return super()._podman(cmd, cmd_args, in_data, use_container_id)
