"""Opens connections to one address and compares the answers of the pods with what was expected.

    probe.py URL [--times N] (--pods POD,POD --sources ADDRESS,ADDRESS | --refused | --silent)

URL is http://ADDRESS:PORT or udp://ADDRESS:PORT. Each time it is a new connection, so each time a pod is chosen anew.
Prints one line. Exit code 1 and a reason if anything is otherwise than expected. Standard library only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import sys
from collections import Counter as Counts
from urllib.parse import urlsplit


def ask_http(host: str, port: int, timeout: float) -> bytes:
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    finally:
        connection.close()


def ask_udp(host: str, port: int, timeout: float) -> bytes:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.settimeout(timeout)
        asking.connect((host, port))
        asking.send(b"who are you?\n")
        return asking.recv(2048)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("url")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("--pods", help="all of these answer, and no others")
    parser.add_argument("--sources", help="the pods see these client addresses, and no others")
    parser.add_argument("--refused", action="store_true", help="each connection is refused")
    parser.add_argument("--silent", action="store_true", help="no connection comes about, for whatever reason")
    return parser.parse_args()


def main() -> None:
    wanted = arguments()
    url = urlsplit(wanted.url)
    ask = {"http": ask_http, "udp": ask_udp}[url.scheme]
    pods, sources, failures = Counts(), Counts(), Counts()
    for _time in range(wanted.times):
        try:
            answer = json.loads(ask(str(url.hostname), int(url.port or 80), wanted.timeout))
        except OSError as error:
            failures["refused" if isinstance(error, ConnectionRefusedError) else str(error)] += 1
        else:
            pods[answer["pod"]] += 1
            sources[answer["source"]] += 1

    print(f"{url.netloc} -> {told(pods, sources, failures)}")
    if wanted.silent:
        right = not pods
    elif wanted.refused:
        right = not pods and set(failures) == {"refused"}
    else:
        right = not failures and set(pods) == names(wanted.pods) and set(sources) == names(wanted.sources)
    if not right:
        expected = "no answer" if wanted.silent else "refused" if wanted.refused else wanted.pods
        sys.exit(f"expected: {expected}" + (f", seen as {wanted.sources}" if wanted.sources else ""))


def names(option: str | None) -> set[str]:
    return set((option or "").split(","))


def told(pods: Counts, sources: Counts, failures: Counts) -> str:
    counted = [", ".join(f"{name} ({times})" for name, times in sorted(count.items())) for count in (pods, failures)]
    parts = [
        f"{counted[0]}, seen as {' and '.join(sorted(sources))}" if pods else "",
        f"no answer: {counted[1]}" if failures else "",
    ]
    return "; ".join(part for part in parts if part)


if __name__ == "__main__":
    main()
