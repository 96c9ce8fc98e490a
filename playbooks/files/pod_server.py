"""What runs in a pod of the demo: says which pod it is and whom it sees, over HTTP and over UDP, IPv4 and IPv6.

    pod_server.py POD HTTP_PORT UDP_PORT

An answer is one line of JSON: {"pod": "web-1", "source": "192.0.2.100"}. Standard library only.
"""

from __future__ import annotations

import http.server
import json
import socket
import socketserver
import sys
import threading


def answer(pod: str, source: str) -> bytes:
    # on a socket for both families an IPv4 address looks like ::ffff:192.0.2.100
    source = source.removeprefix("::ffff:")
    return json.dumps({"pod": pod, "source": source}).encode() + b"\n"


class BothFamilies:
    """An IPv6 socket that takes IPv4 too."""

    address_family = socket.AF_INET6
    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class TcpServer(BothFamilies, socketserver.ThreadingTCPServer):
    pass


class UdpServer(BothFamilies, socketserver.ThreadingUDPServer):
    pass


def main() -> None:
    pod, http_port, udp_port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    class HttpHandler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answer(pod, self.client_address[0])
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class UdpHandler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            _data, reply_socket = self.request
            reply_socket.sendto(answer(pod, self.client_address[0]), self.client_address)

    udp_server = UdpServer(("::", udp_port), UdpHandler)
    threading.Thread(target=udp_server.serve_forever, daemon=True).start()
    TcpServer(("::", http_port), HttpHandler).serve_forever()


if __name__ == "__main__":
    main()
