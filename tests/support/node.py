# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network namespace as a test node: real kernel, real tools, the real module, without an Ansible run around it."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import re
import subprocess
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.metal.nodenet.plugins.modules import kube_nat_chains

_CLONE_NEWNET = 0x40000000
_COUNTERS = re.compile(r"\[\d+:\d+\]")
_names = iter(range(1_000_000))
_WARNING = "warning: "
#: The legacy tools of all namespaces share one lock, and tests run next to each other: seconds to wait for it.
LOCK = ("-w", "30")

Result = dict[str, Any]


class Node:
    """One network namespace. Everything in it goes when :meth:`close` is called."""

    def __init__(self, backend: str = "nft") -> None:
        self.backend = backend
        self.name = f"nodenet-test-{os.getpid()}-{next(_names)}"
        self.open()

    def open(self) -> None:
        """Make the namespace, under the same name as before: what a reboot leaves of the kernel's state."""
        _run(["ip", "netns", "add", self.name])
        self.ip("link", "set", "lo", "up")

    def close(self) -> None:
        """Delete the namespace."""
        _run(["ip", "netns", "del", self.name])

    # --- commands ---

    def ip(self, *words: str) -> str:
        """``ip`` inside of the namespace."""
        return _run(["ip", "-n", self.name, *words])

    def exec(self, *argv: str, text: str | None = None) -> str:
        """A command inside of the namespace; its standard output. Fails the test if the command fails."""
        return _run(["ip", "netns", "exec", self.name, *argv], text)

    def status(self, *argv: str, text: str | None = None) -> int:
        """The exit code of a command inside of the namespace."""
        return subprocess.run(["ip", "netns", "exec", self.name, *argv], input=text, text=True,
                              capture_output=True, check=False).returncode

    def add_interface(self, name: str, addresses: Sequence[str]) -> None:
        """An interface that is up and has these addresses (with length)."""
        self.ip("link", "add", name, "type", "veth", "peer", "name", name + "-far")
        self.ip("link", "set", name + "-far", "up")
        for address in addresses:
            self.ip("addr", "add", address, "dev", name, *(["nodad"] if ":" in address else []))
        self.ip("link", "set", name, "up")

    def tool(self, family: str, what: str = "") -> str:
        """``iptables-nft-save`` and its kind."""
        return f"{'iptables' if family == 'ipv4' else 'ip6tables'}-{self.backend}{what}"

    def save(self, family: str) -> str:
        """The whole dump, comments left out and counters zeroed: what must not change where nothing changed."""
        text = self.exec(self.tool(family, "-save"))
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return _COUNTERS.sub("[0:0]", "\n".join(lines)) + "\n"

    def saves(self) -> dict[str, str]:
        """Both families' dumps."""
        return {family: self.save(family) for family in ("ipv4", "ipv6")}

    def load(self, family: str, text: str, flush: bool = False) -> None:
        """``iptables-restore``, without flushing unless told so."""
        self.exec(self.tool(family, "-restore"), *LOCK, *([] if flush else ["--noflush"]), text=text)

    def iptables(self, *words: str, family: str = "ipv4") -> str:
        """One plain iptables command."""
        return self.exec(self.tool(family), *LOCK, *words)

    # --- the module ---

    def module(self, check: bool = False, module: ModuleType = kube_nat_chains,
               environment: Mapping[str, str] | None = None, user: int = 0, **arguments: Any) -> Result:
        """Run a module here and return its result, failed or not.

        What a node keeps by default would be this machine's: unless told where, a test node keeps nothing.
        """
        arguments.setdefault("state_dir", f"/nonexistent/{self.name}")
        code, output = self._fork(lambda: _run_module(module, check, arguments), environment, user)
        assert output.strip(), f"the module said nothing (exit {code})"
        result: Result = json.loads(output.strip().splitlines()[-1])
        assert "traceback" not in result, result["traceback"]
        result["warnings"] = [json.loads(line[len(_WARNING):]) for line in output.splitlines()
                              if line.startswith(_WARNING)]
        return result

    def four_ways(self, **arguments: Any) -> Result:
        """Check, apply, apply again, check again. Returns the first result; the four must fit together."""
        before = self.saves()
        predicted = self.module(check=True, **arguments)
        assert self.saves() == before, "check mode wrote something"
        applied = self.module(**arguments)
        for result in (predicted, applied):
            assert not result.get("failed"), result["msg"]
        assert (predicted["changed"], predicted["diff"]) == (applied["changed"], applied["diff"])
        after = self.saves()
        for check in (False, True):
            again = self.module(check=check, **arguments)
            assert not again.get("failed"), again["msg"]
            assert not again["changed"], again["diff"]
            assert again["diff"] == []
        assert self.saves() == after
        return applied

    def run_inside(self, action: Callable[[], None]) -> None:
        """Run Python code of the collection in the namespace, in a process of its own. It must not raise."""
        _code, output = self._fork(action, None, 0)
        assert not output, output

    def _fork(self, action: Any, environment: Mapping[str, str] | None, user: int) -> tuple[int, str]:
        """Run ``action`` in a child that lives in the namespace; what it printed."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            code = 70
            output = io.StringIO()
            try:
                os.environ.update(environment or {})
                _enter(f"/run/netns/{self.name}")
                if user:
                    # Python may be where only root can read: one run as root loads everything that is loaded late.
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                        action()
                    os.setuid(user)
                with contextlib.redirect_stdout(output):
                    action()
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
            except BaseException:
                output.write("\n" + json.dumps({"failed": True, "traceback": traceback.format_exc()}))
            with os.fdopen(write_end, "w", encoding="utf-8", errors="surrogateescape") as pipe:
                pipe.write(output.getvalue())
            os._exit(code)
        os.close(write_end)
        with os.fdopen(read_end, encoding="utf-8", errors="surrogateescape") as pipe:
            text = pipe.read()
        _pid, state = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(state), text


@contextlib.contextmanager
def node(backend: str = "nft") -> Iterator[Node]:
    """A node for the length of a block."""
    one = Node(backend)
    try:
        yield one
    finally:
        one.close()


def _run_module(module: ModuleType, check: bool, arguments: Mapping[str, Any]) -> None:
    # In a process that has imported Ansible's controller, as a test run has, warnings would go to its display.
    AnsibleModule.warn = lambda _self, text, **_options: print(_WARNING + json.dumps(text))
    with patch_module_args({**arguments, "_ansible_check_mode": check, "_ansible_diff": True}):
        module.main()


def _enter(path: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def _run(argv: Sequence[str], text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, errors="surrogateescape")
    assert done.returncode == 0, f"{' '.join(argv)}: exit {done.returncode}: {done.stderr}"
    return done.stdout
