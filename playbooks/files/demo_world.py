"""Builds the small world of the demo out of network namespaces, and takes it down.

    demo_world.py up      (down first, if any of it is there)
    demo_world.py down

    nodenet-demo-client                    nodenet-demo-node                        nodenet-demo-web-1
     eth0 192.0.2.100  ------------------  eth0 192.0.2.10                            eth0 10.244.1.11
          2001:db8::100                         2001:db8::10                               fd00:10:244:1::11
     routes to the service addresses       eth1 (nobody there)
     through the node                      pod-web-1      10.244.1.1  --------------  ...
                                           pod-web-2      (fd00:10:244:1::1           nodenet-demo-web-2      ... 12
                                           pod-gateway-1  on each of them)            nodenet-demo-gateway-1  ... 13
                                           pod-dns-1                                  nodenet-demo-dns-1      ... 14

Each pod hangs on the node by a veth pair of its own and a route, as with the CNI plugin ptp or with Calico. Nothing of
the machine outside these namespaces is touched but /run/nodenet-demo: the links are made inside them. Needs root and
iproute2.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

PREFIX = "nodenet-demo-"
NODE, CLIENT = PREFIX + "node", PREFIX + "client"
#: Where the node keeps its state: namespaces share the files of the machine.
STATE_DIR = "/run/nodenet-demo"
#: pod -> last part of its addresses
PODS = {"web-1": 11, "web-2": 12, "gateway-1": 13, "dns-1": 14}
HTTP_PORT, UDP_PORT = 8080, 5353

NODE_ADDRESSES = ("192.0.2.10", "2001:db8::10")
CLIENT_ADDRESSES = ("192.0.2.100", "2001:db8::100")
GATEWAYS = ("10.244.1.1", "fd00:10:244:1::1")
#: Where the services of files/cluster.yml live: cluster IPs and load-balancer IPs.
SERVICE_NETWORKS = ("10.96.0.0/16", "203.0.113.0/24", "fd00:10:96::/112", "2001:db8:5::/64")

SYSCTLS = {
    NODE: {
        "net/ipv4/ip_forward": 1,
        "net/ipv6/conf/all/forwarding": 1,
        # kube-proxy sets it where node ports answer on 127.0.0.1
        "net/ipv4/conf/all/route_localnet": 1,
    },
}

#: Rules that somebody else has put on the node. They must be there, untouched, when all is over.
FOREIGN_RULES = {
    "iptables-restore": """\
*mangle
-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -m comment --comment "site: tunnel" -j TCPMSS --clamp-mss-to-pmtu
COMMIT
*nat
:SITE-NAT - [0:0]
-A POSTROUTING -m comment --comment "site: own NAT" -j SITE-NAT
-A SITE-NAT -s 172.31.0.0/16 ! -d 172.31.0.0/16 -j MASQUERADE
COMMIT
*filter
:SITE-INPUT - [0:0]
-A INPUT -m comment --comment "site: who may log in" -j SITE-INPUT
-A FORWARD -s 198.51.100.0/24 -m comment --comment "site: blocked" -j DROP
-A SITE-INPUT -s 192.0.2.0/24 -p tcp -m tcp --dport 22 -j ACCEPT
-A SITE-INPUT -p tcp -m tcp --dport 22 -j DROP
COMMIT
""",
    "ip6tables-restore": """\
*mangle
-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -m comment --comment "site: tunnel" -j TCPMSS --clamp-mss-to-pmtu
COMMIT
*nat
:SITE-NAT - [0:0]
-A POSTROUTING -m comment --comment "site: own NAT" -j SITE-NAT
COMMIT
*filter
:SITE-INPUT - [0:0]
-A INPUT -m comment --comment "site: who may log in" -j SITE-INPUT
-A SITE-INPUT -s 2001:db8::/64 -p tcp -m tcp --dport 22 -j ACCEPT
-A SITE-INPUT -p tcp -m tcp --dport 22 -j DROP
COMMIT
""",
}


def run(*argv: str, text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def ip(namespace: str, *arguments: str) -> None:
    run("ip", "-n", namespace, *arguments)


def within(namespace: str, *argv: str, text: str | None = None) -> str:
    return run("ip", "netns", "exec", namespace, *argv, text=text)


def address(namespace: str, link: str, *networks: str) -> None:
    for network in networks:
        # an address of ours is nobody else's: no waiting for duplicate address detection
        ip(namespace, "address", "add", network, "dev", link, *(["nodad"] if ":" in network else []))


def existing() -> list[str]:
    try:
        return sorted(name for name in os.listdir("/run/netns") if name.startswith(PREFIX))
    except FileNotFoundError:
        return []


def up() -> None:
    down()
    for namespace in (NODE, CLIENT, *(PREFIX + pod for pod in PODS)):
        run("ip", "netns", "add", namespace)
        ip(namespace, "link", "set", "lo", "up")
        for name, value in SYSCTLS.get(namespace, {}).items():
            within(namespace, "sh", "-c", f"echo {value} >/proc/sys/{name}")
    client()
    rest_of_the_world()
    for pod, number in PODS.items():
        connect_pod(pod, number)
    for command, rules in FOREIGN_RULES.items():
        within(NODE, command, text=rules)
    wait_for_pods()


def client() -> None:
    run("ip", "link", "add", "eth0", "netns", NODE, "type", "veth", "peer", "name", "eth0", "netns", CLIENT)
    for namespace, addresses in ((NODE, NODE_ADDRESSES), (CLIENT, CLIENT_ADDRESSES)):
        address(namespace, "eth0", addresses[0] + "/24", addresses[1] + "/64")
        ip(namespace, "link", "set", "eth0", "up")
    for network in SERVICE_NETWORKS:
        ip(CLIENT, "route", "add", network, "via", NODE_ADDRESSES[":" in network])


def rest_of_the_world() -> None:
    """A default route for the node, to where nobody answers: without a route, no packet gets as far as the rules."""
    ip(NODE, "link", "add", "eth1", "type", "veth", "peer", "name", "world")
    for link in ("world", "eth1"):
        ip(NODE, "link", "set", link, "up")
    for family in ("-4", "-6"):
        ip(NODE, family, "route", "add", "default", "dev", "eth1")


def connect_pod(pod: str, number: int) -> None:
    namespace, link = PREFIX + pod, "pod-" + pod
    addresses = [f"10.244.1.{number}/32", f"fd00:10:244:1::{number}/128"]
    run("ip", "link", "add", link, "netns", NODE, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    address(NODE, link, GATEWAYS[0] + "/32", GATEWAYS[1] + "/128")
    address(namespace, "eth0", *addresses)
    ip(NODE, "link", "set", link, "up")
    ip(namespace, "link", "set", "eth0", "up")
    for network, gateway in zip(addresses, GATEWAYS):
        ip(NODE, "route", "add", network, "dev", link)
        ip(namespace, "route", "add", gateway, "dev", "eth0")
        ip(namespace, "route", "add", "default", "via", gateway, "dev", "eth0")
    server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pod_server.py")
    subprocess.Popen(
        ["ip", "netns", "exec", namespace, sys.executable, server, pod, str(HTTP_PORT), str(UDP_PORT)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for_pods(seconds: float = 15) -> None:
    """Until each pod listens, as the sockets of its namespace say."""
    end = time.monotonic() + seconds
    for pod in PODS:
        while not listens(PREFIX + pod):
            if time.monotonic() > end:
                sys.exit(f"the server of the pod {pod} does not listen after {seconds} s")
            time.sleep(0.05)


def listens(namespace: str) -> bool:
    # of a line of /proc/net/tcp6: local address:port in hexadecimal, remote address:port, state (0A is LISTEN)
    lines = within(namespace, "cat", "/proc/net/tcp6").splitlines()[1:]
    return any(line.split()[1].endswith(f":{HTTP_PORT:04X}") and line.split()[3] == "0A" for line in lines)


def down() -> None:
    for namespace in existing():
        for pid in run("ip", "netns", "pids", namespace).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "delete", namespace)
    shutil.rmtree(STATE_DIR, ignore_errors=True)


def main() -> None:
    actions = {"up": up, "down": down}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit((__doc__ or "").strip())
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    actions[sys.argv[1]]()


if __name__ == "__main__":
    main()
