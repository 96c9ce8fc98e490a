# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small Kubernetes API server: discovery, lists in pages, and the faults that a real one has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "secret-token-of-the-test"

_DISCOVERY: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "36"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {"kind": "APIGroupList", "groups": []},
}


class ApiServer:
    """Lists by path, ``{"/api/v1/services": ("v1", "Service", [objects])}``, and what goes wrong.

    ``faults``: path to a list of what happens to the next requests for it: an HTTP status, ``cut`` (half of an answer,
    then the connection is closed), ``half`` (half of an answer as if it were all) or None (nothing).
    """

    def __init__(self, lists: dict[str, tuple[str, str, list[dict[str, Any]]]]) -> None:
        self.lists = lists
        self.faults: dict[str, list[int | str | None]] = {}
        #: (path, limit, continue) of every list that was asked for.
        self.asked: list[tuple[str, str, str]] = []
        self.host = ""

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes, str]:
        """Status, body, and what to do to the answer."""
        if path in _DISCOVERY:
            return 200, json.dumps(_DISCOVERY[path]).encode(), ""
        limit, token = query.get("limit", [""])[0], query.get("continue", [""])[0]
        self.asked.append((path, limit, token))
        fault = self.faults[path].pop(0) if self.faults.get(path) else None
        if isinstance(fault, int):
            return fault, _status(fault), ""
        if path not in self.lists:
            return 404, b"404 page not found\n", ""
        version, kind, items = self.lists[path]
        start = int(token or 0)
        end = start + int(limit or len(items))
        metadata = {"resourceVersion": "1", **({"continue": str(end)} if end < len(items) else {})}
        body = {"apiVersion": version, "kind": kind + "List", "metadata": metadata, "items": items[start:end]}
        return 200, json.dumps(body).encode(), fault or ""


def _status(code: int) -> bytes:
    return json.dumps({"kind": "Status", "status": "Failure", "message": f"fault {code} of the test",
                       "code": code}).encode()


@contextmanager
def api_server(lists: dict[str, tuple[str, str, list[dict[str, Any]]]]) -> Iterator[ApiServer]:
    """A server on 127.0.0.1 that wants a token, until the block ends."""
    server = ApiServer(lists)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, body, fault = 401, _status(401), ""
            else:
                status, body, fault = server.answer(url.path.rstrip("/"), parse_qs(url.query))
            half = body[:len(body) // 2]
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(half if fault == "half" else body)))
            self.end_headers()
            self.wfile.write(half if fault else body)
            if fault == "cut":
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    server.host = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
