#!/usr/bin/env python3
"""Real packets: a server that says who it is and whom it sees, and a client that compares that with what it expects.

    packets.py serve NAME
    packets.py ask < CHECKS.json

The server answers over TCP and UDP, IPv4 and IPv6, on port 8080. CHECKS is a list of

    name            of the claim
    from            HOST, or HOST/POD: the client is in the network namespace POD
    to              "tcp ADDRESS PORT" or "udp ADDRESS PORT"
    times           how many connections (1)
    answered_by     names of servers: each of them must answer at least once, and nobody else
    seen_as         addresses: the servers must see each of them, and no other
    even            true: the servers answer equally often, as far as chance allows
    seen_ports      [LOWEST, HIGHEST]: the servers must see ports of the client in between
    any_one         true: one of answered_by answers all connections
    refused         true: each connection is refused: nobody listens, or a rule that REJECTs says so
    rejected        true: as refused, or a firewall says that it is prohibited
    silent          true: no connection comes about, and none is refused
    lost            true: as silent, and nobody says why
    expired         true: each packet goes in circles until its time to live ends, and the client is told so
    source          the client's own address (chosen by routing)
    source_port     the client's port (0: any); with UDP, the flow of an earlier check goes on
    timeout         seconds (2; 1 where silence is expected)

All checks run at the same time. Prints a line for each; the exit code is 1 if anything is otherwise than expected.
Python 3.9, standard library only, run in containers as root.
"""

from __future__ import annotations

import ctypes
import json
import socket
import socketserver
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PORT = 8080
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
#: How many standard deviations a share may be off: by chance, once in two million servers.
DEVIATIONS = 5
#: After how many failures no more connections are tried where each is to be answered.
ENOUGH_FAILURES = 5
EXPIRED = "expired on the way"
PROHIBITED = "prohibited"
#: IP_RECVERR and IPV6_RECVERR of Linux: errors of the way come to the socket, which then can say what they were.
TELL_ERRORS, TELL_ERRORS_V6 = (socket.IPPROTO_IP, 11), (socket.IPPROTO_IPV6, 25)
#: IPV6_RECVPKTINFO and IPV6_PKTINFO.
RECEIVE_ADDRESS, ADDRESS_ASKED = 49, 50
#: What ICMP (2) and ICMPv6 (3) say, by type and code: exceeded in transit; host or communication prohibited.
SAID = {(2, 11, 0): EXPIRED, (3, 3, 0): EXPIRED,
        (2, 3, 10): PROHIBITED, (2, 3, 13): PROHIBITED, (3, 1, 1): PROHIBITED}

Check = dict[str, Any]


# ---- the server ----


class UdpServer(socketserver.UDPServer):
    """An IPv6 socket that takes IPv4 too. A request is the data, and what lets its answer come from where it went."""

    address_family = socket.AF_INET6
    allow_reuse_address = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.IPPROTO_IPV6, RECEIVE_ADDRESS, 1)
        super().server_bind()

    def get_request(self) -> tuple[Any, Any]:
        data, messages, _flags, client = self.socket.recvmsg(2048, 256)
        # struct in6_pktinfo: the address that was asked, and an interface, which routing is to choose
        asked = [(level, kind, message[:16] + bytes(4)) for level, kind, message in messages if kind == ADDRESS_ASKED]
        return (data, asked), client


class TcpServer(socketserver.ThreadingTCPServer):
    """The same for TCP."""

    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


def serve(name: str) -> None:
    def answer(client: str, port: int) -> bytes:
        sees = client[len("::ffff:"):] if "." in client else client
        return json.dumps({"name": name, "sees": sees, "port": port}).encode()

    class Tcp(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(answer(*self.client_address[:2]))

    class Udp(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data, asked = [answer(*self.client_address[:2])], self.request[1]
            self.server.socket.sendmsg(data, asked, 0, self.client_address)

    udp = UdpServer(("::", PORT), Udp)
    threading.Thread(target=udp.serve_forever, daemon=True).start()
    TcpServer(("::", PORT), Tcp).serve_forever()


# ---- the client ----


def ask_once(check: Check) -> Any:
    """What a server said, or how it failed."""
    protocol, address, port = check["to"].split()
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    v6 = ":" in address
    with socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, kind) as client:
        client.settimeout(check.get("timeout", 1 if check.get("silent") or check.get("lost") else 2))
        client.setsockopt(*(TELL_ERRORS_V6 if v6 else TELL_ERRORS), 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            client.bind((check.get("source", ""), check.get("source_port", 0)))
            client.connect((address, int(port)))
            if kind == socket.SOCK_DGRAM:
                client.send(b"who are you?")
            return json.loads(client.recv(2048))
        except ConnectionRefusedError:
            return "refused"
        except OSError as error:
            return said(client) or str(error)


def said(client: socket.socket) -> str:
    """What a router or a firewall said about a packet, if it is one of ``SAID``."""
    try:
        _data, messages, _flags, _address = client.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    except OSError:
        return ""
    # struct sock_extended_err: errno, then who says so (ICMP, ICMPv6), type and code
    return next((SAID[data[4], data[5], data[6]] for _level, _kind, data in messages
                 if (data[4], data[5], data[6]) in SAID), "")


def ask(check: Check) -> tuple[bool, str]:
    """Whether all is as expected, and what was seen."""
    answers: list[Any] = []
    for _time in range(check.get("times", 1)):
        answers.append(ask_once(check))
        # wrong already, and hundreds of timeouts would say no more
        if "answered_by" in check and sum(isinstance(answer, str) for answer in answers) >= ENOUGH_FAILURES:
            break
    names = Counter(answer["name"] for answer in answers if isinstance(answer, dict))
    sources = {answer["sees"] for answer in answers if isinstance(answer, dict)}
    failures = Counter(answer for answer in answers if isinstance(answer, str))
    ok = right(check, names, sources, failures)
    if "seen_ports" in check:
        lowest, highest = check["seen_ports"]
        ok = ok and all(lowest <= answer["port"] <= highest for answer in answers if isinstance(answer, dict))
    return ok, told(names, sources, failures)


def right(check: Check, names: Counter[str], sources: set[str], failures: Counter[str]) -> bool:
    if check.get("expired"):
        return not names and set(failures) == {EXPIRED}
    if check.get("lost"):
        return not names and set(failures) == {"timed out"}
    if check.get("refused"):
        return not names and set(failures) == {"refused"}
    if check.get("rejected"):
        return not names and len(failures) == 1 and set(failures) <= {"refused", PROHIBITED}
    if check.get("silent"):
        return not names and "refused" not in failures
    wanted = set(check["answered_by"])
    who = len(names) == 1 and set(names) <= wanted if check.get("any_one") else set(names) == wanted
    whom = sources == set(check["seen_as"]) if "seen_as" in check else True
    return not failures and who and whom and (not check.get("even") or even(names))


def even(names: Counter[str]) -> bool:
    total, share = sum(names.values()), 1 / len(names)
    allowed = DEVIATIONS * (total * share * (1 - share)) ** 0.5
    return all(abs(count - total * share) <= allowed for count in names.values())


def told(names: Counter[str], sources: set[str], failures: Counter[str]) -> str:
    parts = [", ".join(f"{name} {count}" for name, count in sorted(counts.items())) for counts in (names, failures)]
    return "; ".join(part for part in (parts[0], f"seen as {' '.join(sorted(sources))}" if names else "", parts[1])
                     if part)


def enter(namespace: str) -> None:
    """Move this thread to a named network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}", "rb") as opened:
        if libc.setns(opened.fileno(), NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def in_thread(check: Check) -> tuple[bool, str]:
    pod = check["from"].partition("/")[2]
    if pod:
        enter(pod)
    return ask(check)


def ask_all(checks: list[Check]) -> bool:
    if not checks:
        sys.exit("there is nothing to check")
    # a thread for each, for a thread stays in the namespace that it entered
    results: list[tuple[bool, str]] = []
    with ThreadPoolExecutor(len(checks)) as pool:
        barrier = threading.Barrier(len(checks))

        def task(check: Check) -> tuple[bool, str]:
            barrier.wait()
            return in_thread(check)

        results = list(pool.map(task, checks))
    for check, (ok, seen) in zip(checks, results):
        print(f"{'ok' if ok else 'WRONG'}: {check['name']}: {check['from']} to {check['to']}: {seen}")
        if not ok:
            wanted = {key: check[key] for key in check if key not in ("name", "from", "to")}
            print(f"    expected: {json.dumps(wanted)}")
    return all(ok for ok, _seen in results)


def main() -> None:
    if sys.argv[1:2] == ["serve"] and len(sys.argv) == 3:
        serve(sys.argv[2])
    elif sys.argv[1:] == ["ask"]:
        sys.exit(not ask_all(json.load(sys.stdin)))
    else:
        sys.exit((__doc__ or "").strip())


if __name__ == "__main__":
    main()
