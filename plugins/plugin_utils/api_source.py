# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a cluster from its API server, page by page, with the client of kubernetes.core. Anything unusual is an error.

kubernetes.core's own ``k8s_info`` reads a kind in one answer, and takes some errors for an empty list.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

#: A list whose pages expire under way (410) is begun anew so many times.
_ATTEMPTS = 3


class Kind(NamedTuple):
    """Where a kind is served: the first of these that the server has."""

    paths: tuple[str, ...]
    required: bool = False


KINDS = {
    "Service": Kind(("/api/v1/services",), True),
    "EndpointSlice": Kind(("/apis/discovery.k8s.io/v1/endpointslices",), True),
    "Node": Kind(("/api/v1/nodes",), True),
    "IPPool": Kind(("/apis/crd.projectcalico.org/v1/ippools", "/apis/projectcalico.org/v3/ippools")),
    "BGPConfiguration": Kind(("/apis/crd.projectcalico.org/v1/bgpconfigurations",
                              "/apis/projectcalico.org/v3/bgpconfigurations")),
    "ServiceCIDR": Kind(("/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1beta1/servicecidrs")),
    "Pod": Kind(("/api/v1/pods",), True),
    "WorkloadEndpoint": Kind(("/apis/projectcalico.org/v3/workloadendpoints",)),
}
DEFAULT_KINDS = ("Service", "EndpointSlice", "Node", "IPPool", "BGPConfiguration", "ServiceCIDR")

#: (path, query) to the body of the answer. Raises :class:`Refused`.
Get = Callable[[str, dict[str, Any]], bytes]


class Refused(Exception):
    """The server's answer was an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


class Gone(Exception):
    """The server has forgotten the list between two pages."""


def read_api(options: dict[str, Any]) -> tuple[str, list[Any]]:
    """The server's address and the objects of ``kinds``. Raises ``ClusterFileError``."""
    items: list[Any] = []
    with _private_files():
        server, get = _connect(options)
        for kind in options["kinds"]:
            items += read_kind(server, get, kind, options["page_size"])
    return server, items


@contextmanager
def _private_files() -> Iterator[None]:
    """Let the client have its files, among them keys out of a kubeconfig, where they go when the read is over.

    Otherwise it leaves them in the machine's directory for temporary files, when one of Ansible's processes ends.
    """
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="nodenet-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before


def read_kind(server: str, get: Get, kind: str, page_size: int) -> list[Any]:
    """All objects of a kind; none where the server does not know a kind that a cluster may lack."""
    for path in KINDS[kind].paths:
        for _attempt in range(_ATTEMPTS):
            try:
                return [item for page in _pages(server, get, kind, path, page_size) for item in page]
            except Gone:
                continue
            except Refused as error:
                if error.status != 404:
                    raise ClusterFileError(f"api: {server}: {path}: {error}. All of {kind} is read or nothing; if the "
                                           "cluster can do without that kind, leave it out of kinds") from None
                break
        else:
            raise ClusterFileError(f"api: {server}: {path}: the list expired under way {_ATTEMPTS} times (410); give a "
                                   "larger page_size")
    if KINDS[kind].required:
        raise ClusterFileError(f"api: {server} does not serve {kind} at {' or '.join(KINDS[kind].paths)} (404)")
    return []


def _pages(server: str, get: Get, kind: str, path: str, page_size: int) -> Iterator[list[Any]]:
    token = ""
    while True:
        query = {"limit": page_size, "_continue": token} if token else {"limit": page_size}
        try:
            answer = _answer(server, path, get(path, query))
        except Refused as error:
            if token and error.status == 410:
                raise Gone from None
            if token and error.status == 404:  # not a kind that the server lacks: it has given a page of it
                raise ClusterFileError(f"api: {server}: {path}: {error} in the middle of the list") from None
            raise
        if answer.get("kind") != kind + "List":
            raise ClusterFileError(f"api: {server}: {path}: the answer is a {shown(answer.get('kind'))}, not a "
                                   f"{kind}List")
        items = answer.get("items") or []
        if not isinstance(items, list):
            raise ClusterFileError(f"api: {server}: {path}: items is not a list")
        yield [_completed(item, answer, kind) for item in items]
        before, token = token, (answer.get("metadata") or {}).get("continue") or ""
        if not token:
            return
        if token == before:
            raise ClusterFileError(f"api: {server}: {path}: the server gives the same page again and again")


def _answer(server: str, path: str, body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise ClusterFileError(f"api: {server}: {path}: the answer is not whole JSON: {error}") from None
    if not isinstance(answer, dict):
        raise ClusterFileError(f"api: {server}: {path}: the answer is not an object")
    return answer


def _completed(item: Any, answer: dict[str, Any], kind: str) -> Any:
    """An item with the kind and version that a list says once, and without what only servers look at."""
    if not isinstance(item, dict):
        return item
    if isinstance(item.get("metadata"), dict):
        item["metadata"].pop("managedFields", None)
    return {"apiVersion": answer.get("apiVersion"), "kind": kind, **item}


def _connect(options: dict[str, Any]) -> tuple[str, Get]:
    """The client of kubernetes.core, which reads the same options and files as its modules do."""
    try:
        import urllib3
        from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
        from kubernetes.dynamic.exceptions import DynamicApiError
    except ImportError as error:
        raise ClusterFileError(f"api: reading a cluster from its API needs the collection kubernetes.core and the "
                               f"Python package kubernetes on the controller: {error}") from None
    authentication = {name: value for name, value in options.items()
                      if name not in ("kinds", "page_size", "timeout") and value is not None}
    try:
        client = get_api_client(**authentication).client
    except DynamicApiError as error:
        raise ClusterFileError(f"api: the server refused to say what it serves: {_refusal(error)}") from None
    except Exception as error:  # of many packages: configuration, TLS, network
        raise ClusterFileError(f"api: there is no way to the server: {error}") from None
    server = _server(str(client.configuration.host))

    def get(path: str, query: dict[str, Any]) -> bytes:
        try:
            answer = client.request("get", path, serialize=False, _request_timeout=options["timeout"], **query)
            return bytes(answer.data)
        except DynamicApiError as error:
            raise _refusal(error) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterFileError(f"api: {server}: {path}: the answer did not arrive in full: {error}") from None

    return server, get


def _server(host: str) -> str:
    """The server's address without a user's name and password."""
    parts = urlsplit(host)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _refusal(error: Any) -> Refused:
    """Status and message of the answer, without its headers."""
    try:
        message = str(json.loads(error.body)["message"])
    except (ValueError, KeyError, TypeError):
        message = str(error.reason)
    return Refused(int(error.status), message[:300])
