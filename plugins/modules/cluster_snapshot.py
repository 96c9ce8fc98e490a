# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of ``metal.nodenet.cluster_snapshot``, whose work the action plugin of that name does."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_snapshot
short_description: Read a cluster's objects once, check them, and keep what the other modules read
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Reads a cluster from a file, from its API or from a list, and writes a file for the option O(ignore:cluster) of the
    other modules. It holds only what they read.
  - Whatever is unusual is an error, before any node is touched; a source that cannot be read in full, that is empty, or
    that has lost many of its services since the last snapshot, and networks that must not overlap.
  - Runs on the controller and connects to no host. Use C(run_once), or a play on C(localhost), so that all hosts get
    the same snapshot and a failure ends the play for all of them.
  - No object is returned, so that facts and logs stay small.
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
options:
  file:
    description:
      - Path of a C(v1) List on the controller, as C(kubectl get nodes,services,endpointslices -A -o json) gives it.
        JSON or YAML, also with gzip. A key that is there twice is refused.
    type: str
  objects:
    description:
      - The objects themselves.
    type: list
    elements: dict
  api:
    description:
      - Read from the API server, with the client of the collection kubernetes.core. An empty dictionary is enough where
        its environment variables or the usual kubeconfig say how.
      - Lists are read page by page. If one page fails, everything does.
    type: dict
    suboptions:
      kubeconfig:
        description: Path of a kubeconfig, or its content.
        type: raw
      context:
        description: The context in the kubeconfig.
        type: str
      host:
        description: The server's address.
        type: str
      api_key:
        description: A token.
        type: str
      username:
        description: The name of a user.
        type: str
      password:
        description: The user's password.
        type: str
      ca_cert:
        description: Path of the certificate authority's certificate.
        type: path
      client_cert:
        description: Path of a client certificate.
        type: path
      client_key:
        description: Path of its key.
        type: path
      validate_certs:
        description: Whether the server's certificate is checked. By default it is.
        type: bool
      proxy:
        description: The address of an HTTP proxy.
        type: str
      no_proxy:
        description: Hosts that are reached without the proxy, separated by commas.
        type: str
      impersonate_user:
        description: The user to act for.
        type: str
      impersonate_groups:
        description: The groups to act for.
        type: list
        elements: str
      kinds:
        description:
          - What to read. V(IPPool), V(BGPConfiguration), V(ServiceCIDR) and V(WorkloadEndpoint) may be unknown to the
            server, the others must be there.
          - V(Pod) is needed where floating IPs come from annotations of pods. All pods are read then, and those with
            the annotation kept.
        type: list
        elements: str
        choices: [Service, EndpointSlice, Node, IPPool, BGPConfiguration, ServiceCIDR, Pod, WorkloadEndpoint]
        default: [Service, EndpointSlice, Node, IPPool, BGPConfiguration, ServiceCIDR]
      page_size:
        description: How many objects to ask for at a time.
        type: int
        default: 500
      timeout:
        description: How many seconds to wait for an answer.
        type: int
        default: 60
  select:
    description:
      - By kind, a jmespath expression that is true for the objects that stay. It must give true or false for every
        object of the kind. Kinds without an expression stay.
    type: dict
    default: {}
  dest:
    description:
      - The directory on the controller for snapshots, made for the user alone where it is missing. One that others can
        write to is refused. The newest five snapshots stay. A relative path begins at the working directory.
    type: path
    required: true
  allow_empty:
    description:
      - Accept a cluster without a single Service.
    type: bool
    default: false
  max_service_loss_percent:
    description:
      - How many percent of the services of the last snapshot in O(dest) may be gone. The first snapshot is accepted as
        it is.
    type: int
    default: 20
  service_cidrs:
    description:
      - The CIDRs of cluster IPs, where the cluster has no ServiceCIDR objects; only for the search for overlaps.
    type: list
    elements: str
    default: []
  node_networks:
    description:
      - The networks that the nodes are in; only for the search for overlaps.
    type: list
    elements: str
    default: []
  overlaps:
    description:
      - What to do if a pool, a service CIDR, a pod CIDR or the nodes' addresses and networks have addresses in common
        that they must not. Pod CIDRs inside of pools are normal.
    type: str
    choices: [fail, warn, ignore]
    default: fail
attributes:
  check_mode:
    support: full
    details:
      - The snapshot is written, for that is on the controller and later tasks need it. What the next loss of services
        is measured by stays as it was.
  diff_mode:
    support: none
  platform:
    platforms: linux
requirements:
  - jmespath and netaddr on the controller
  - for O(api), the collection kubernetes.core and the Python package kubernetes on the controller
"""

EXAMPLES = r"""
- name: Take a file that somebody has exported
  metal.nodenet.cluster_snapshot:
    file: files/cluster.json
    dest: "{{ inventory_dir }}/snapshots"
    service_cidrs: [10.96.0.0/12]
  run_once: true
  register: snapshot

- name: Read the cluster from its API, without the services of one namespace
  metal.nodenet.cluster_snapshot:
    api:
      kubeconfig: ~/.kube/config
    select:
      Service: metadata.namespace != 'test'
    dest: "{{ inventory_dir }}/snapshots"
  run_once: true
  register: snapshot

- name: See what would change on a node
  metal.nodenet.kube_nat_chains:
    cluster: "{{ snapshot.path }}"
    node_name: "{{ inventory_hostname }}"
  check_mode: true
  diff: true
"""

RETURN = r"""
source:
  description: What was read, the path of a file or the address of an API server.
  returned: success
  type: str
  sample: /srv/fleet/cluster.yml
path:
  description: The snapshot on the controller.
  returned: success
  type: str
  sample: /srv/fleet/snapshots/cluster-0f343b0931126a20f133d67c2b018a3b5f1a3e4a9d0c4f3c2e2f8a6f1d4f0c11.json.gz
sha256:
  description: The SHA-256 of the snapshot.
  returned: success
  type: str
  sample: 0f343b0931126a20f133d67c2b018a3b5f1a3e4a9d0c4f3c2e2f8a6f1d4f0c11
counts:
  description: How many objects of each kind are in the snapshot.
  returned: success
  type: dict
  sample: {EndpointSlice: 120, IPPool: 2, Node: 40, Service: 97}
services:
  description: How many services there are.
  returned: success
  type: int
  sample: 97
lost_services:
  description: How many services of the last snapshot are gone, and the names of some.
  returned: success
  type: dict
  sample: {count: 1, names: [shop/cart]}
overlaps:
  description: Which networks have addresses in common that must not.
  returned: success
  type: list
  elements: str
  sample: [pool 10.244.0.0/16 (IPPool pods) is inside of service CIDR 10.240.0.0/12 (ServiceCIDR kubernetes)]
"""
