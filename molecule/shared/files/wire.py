"""Makes a network out of containers that have none: links between them, addresses, routes and pods inside of them.

    wire.py NETWORK_FILE

The file is JSON: [[HOST, CONTAINER, {"links": [...], "bridges": [...], ...}], ...], see
inventory/group_vars/containers.yml. Run it on the machine of the containers as root. What is there already stays, so
after the restart of a container it makes what went with it. Prints a line for each thing made. No network of the engine
is used and no interface of the machine is touched.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: What a pod sees as its router, as with Calico: the node answers for an address that it does not have.
POD_GATEWAY, POD_GATEWAY_V6 = "169.254.1.1", "fe80::1"
#: The interface of a pod in the node is this and its name, as Calico's begin.
POD_INTERFACE = "cali"
#: Scripts of this folder that the containers get, and where.
SCRIPTS, PLACE = ("packets.py", "rules.py"), "/usr/local/bin"
#: What wait-for-network.service of the image waits for.
UP = "/run/network-is-there"

made: list[str] = []


def run(*argv: str, text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Host:
    """One container, and what is to be in its network namespace."""

    def __init__(self, name: str, container: str, wanted: dict[str, Any]) -> None:
        self.name, self.container, self.wanted = name, container, wanted
        self.pods: dict[str, int] = {pod["name"]: pod["number"] for pod in wanted.get("pods", [])}
        self.pid = run("podman", "inspect", "--format", "{{.State.Pid}}", self.container).strip()
        if self.pid == "0":
            sys.exit(f"the container {self.container} does not run")

    def ip(self, *words: str) -> str:
        return run("nsenter", "-t", self.pid, "-n", "ip", *words)

    def inside(self, *argv: str) -> str:
        return run("nsenter", "-t", self.pid, "-n", "-m", "-p", *argv)

    def links(self) -> set[str]:
        return {link["ifname"] for link in json.loads(self.ip("-j", "link"))}

    def sysctl(self, values: dict[str, Any]) -> None:
        # /proc/sys/net is that of whoever opens it, and in a container it may be read-only
        for path, value in values.items():
            run("nsenter", "-t", self.pid, "-n", "sh", "-c", f"echo {int(value)} >/proc/sys/{path}")

    def note(self, what: str) -> None:
        made.append(f"{self.name}: {what}")


def mac(host: Host, link: str) -> str:
    """The same after a restart, as that of a network card: neighbours remember it."""
    return ":".join(["02", *re.findall("..", hashlib.sha256(f"{host.name} {link}".encode()).hexdigest()[:10])])


def bridges(host: Host) -> None:
    for name in set(host.wanted.get("bridges", [])) - host.links():
        # as a plain switch: forwards at once, and all of multicast
        host.ip("link", "add", name, "address", mac(host, name), "type", "bridge",
                "forward_delay", "0", "stp_state", "0", "mcast_snooping", "0")
        host.ip("link", "set", name, "up")
        host.note(name)


def links(host: Host, hosts: dict[str, Host]) -> None:
    for link in host.wanted.get("links", []):
        if link["name"] in host.links():
            continue
        peer = hosts[link["to"]]
        peer.ip("link", "add", link["port"], "address", mac(peer, link["port"]), "type", "veth",
                "peer", "name", link["name"], "address", mac(host, link["name"]), "netns", host.pid)
        if "bridge" in link:
            peer.ip("link", "set", link["port"], "master", link["bridge"])
        peer.ip("link", "set", link["port"], "up")
        host.ip("link", "set", link["name"], "up")
        host.note(link["name"])


def addresses(host: Host) -> None:
    for name, networks in host.wanted.get("addresses", {}).items():
        for network in networks:
            # an address of ours is nobody else's: no waiting for duplicate address detection
            host.ip("address", "replace", *network.split(), "dev", name, *(["nodad"] if ":" in network else []))


def routes(host: Host) -> None:
    for route in host.wanted.get("routes", []):
        host.ip(*(["-6"] if ":" in route else []), "route", "replace", *route.split())


def pods(host: Host) -> None:
    there = host.inside("ip", "netns", "list")
    for name, number in host.pods.items():
        if name not in {line.split()[0] for line in there.splitlines()}:
            networks: list[str] = host.wanted["pod_networks"]
            pod_link(host, name, POD_INTERFACE + name, [f"{network}{number}" for network in networks])
            host.note(f"pod {name}")


def pod_link(host: Host, name: str, link: str, pod_addresses: list[str]) -> None:
    def pod(*words: str) -> None:
        host.inside("ip", "-n", name, *words)

    host.inside("ip", "netns", "add", name)
    host.inside("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
    host.ip("link", "set", link, "up")
    host.ip("address", "add", POD_GATEWAY_V6 + "/64", "dev", link, "nodad")
    host.sysctl({f"net/ipv4/conf/{link}/proxy_arp": 1, f"net/ipv4/neigh/{link}/proxy_delay": 0})
    pod("link", "set", "lo", "up")
    pod("link", "set", "eth0", "up")
    pod("route", "add", POD_GATEWAY, "dev", "eth0", "scope", "link")
    for address in pod_addresses:
        v6 = ":" in address
        pod("address", "add", f"{address}/{128 if v6 else 32}", "dev", "eth0", *(["nodad"] if v6 else []))
        pod("route", "add", "default", "via", POD_GATEWAY_V6 if v6 else POD_GATEWAY, "dev", "eth0")
        host.ip("route", "replace", address, "dev", link, *([] if v6 else ["scope", "link"]))


def serve(host: Host) -> None:
    """A server that says its name in each pod, and one in the host itself."""
    for name, enter in [(host.name, []), *((pod, ["ip", "netns", "exec", pod]) for pod in host.pods)]:
        if not listens(host, enter):
            run("podman", "exec", "--detach", host.container, *enter, f"{PLACE}/packets.py", "serve", name)
            host.note(f"server {name}")


def listens(host: Host, enter: list[str]) -> bool:
    return "LISTEN" in host.inside(*enter, "ss", "-Htln", "sport", "=", ":8080")


def wait_for_servers(host: Host, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    for enter in ([], *(["ip", "netns", "exec", pod] for pod in host.pods)):
        while not listens(host, enter):
            if time.monotonic() > end:
                sys.exit(f"{host.name}: no server {' '.join(enter)} after {seconds} s")
            time.sleep(0.05)


def main() -> None:
    hosts = {entry[0]: Host(*entry) for entry in json.loads(Path(sys.argv[1]).read_text())}
    for host in hosts.values():
        for script in SCRIPTS:
            run("podman", "cp", str(Path(__file__).with_name(script)), f"{host.container}:{PLACE}/{script}")
        host.ip("link", "set", "lo", "up")
        host.sysctl({"net/ipv6/conf/all/disable_ipv6": 0, "net/ipv6/conf/default/disable_ipv6": 0})
        bridges(host)
    for host in hosts.values():
        links(host, hosts)
    for host in hosts.values():
        host.sysctl(host.wanted.get("sysctls", {}))
        addresses(host)
    for host in hosts.values():
        routes(host)
        pods(host)
        host.inside("touch", UP)
        serve(host)
    for host in hosts.values():
        wait_for_servers(host)
    print("\n".join(made))


if __name__ == "__main__":
    main()
