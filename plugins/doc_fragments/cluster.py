# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules that read a cluster file document in the same words."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of ``module_utils/cluster/input.py``."""

    DOCUMENTATION = r"""
options:
  cluster:
    description:
      - Path of a C(v1) List with the cluster's objects, as C(kubectl get nodes,services,endpointslices -A -o json)
        gives it, or of what M(metal.nodenet.cluster_snapshot) has made. JSON or YAML, also with gzip. All modules can
        be given the same file; each reads the kinds that it knows.
      - The file is on the controller. It is reduced to what the modules read, once per run of Ansible, and sent to a
        node only if the node does not have that content yet; unless O(remote_src).
    type: path
  remote_src:
    description:
      - O(cluster) is a path on the node. The file must be JSON then, plain or with gzip.
    type: bool
    default: false
  cluster_sha256:
    description:
      - The SHA-256 of the file that O(cluster) names on the node. A file with another one is refused, and the right one
        is kept in C(cache) of O(state_dir), in check mode too.
      - Set by the action plugin; there is no need to give it.
    type: str
"""
