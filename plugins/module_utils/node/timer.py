# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who carries out a roll-back when nobody confirms: a timer of systemd's, or a process of its own.

Neither is a child of the run that armed it: the run, its connection and its controller may all be gone by then.
"""

from __future__ import annotations

import contextlib
import os
import sys

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError, ToolError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools import find_tool, run_tool, start_detached
from ansible_collections.metal.nodenet.plugins.module_utils.node.guard import ARMED
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import LOG, StateDir, StateError, write_whole

SYSTEMD = "systemd"
PROCESS = "process"

_UNITS = "/etc/systemd/system"
_BOOT_UNIT = "nodenet-guard.service"
_WANTS = "multi-user.target.wants"

_BOOT_TEXT = """\
# Written by metal.nodenet.commit_guard while a guard is armed, and removed with it.
[Unit]
Description=Roll back the node's network state that nobody has confirmed
ConditionPathExists={armed}
RequiresMountsFor={state_dir}
# after what may flush or load tables at boot
After=network-pre.target firewalld.service ufw.service nftables.service netfilter-persistent.service iptables.service
Before=kubelet.service

[Service]
Type=oneshot
ExecStart={python} {agent} --state-dir {state_dir} restore

[Install]
WantedBy=multi-user.target
"""


def kind() -> str:
    """What there is on this node: ``systemd`` where it runs and looks after this network namespace."""
    try:
        ours = os.stat("/proc/self/ns/net").st_ino == os.stat("/proc/1/ns/net").st_ino
    except OSError:
        return PROCESS
    return SYSTEMD if ours and os.path.isdir("/run/systemd/system") and find_tool("systemd-run") else PROCESS


def start(state: StateDir, which: str, run_id: str, timeout: float, agent: str) -> None:
    """Have ``agent`` roll back in ``timeout`` seconds. Raises ``NetfilterError``."""
    argv = [_python(), agent, "--state-dir", state.path, "roll-back", "--run", run_id]
    if which == SYSTEMD:
        _write_boot_unit(state, agent)
        run_tool([find_tool("systemd-run") or "systemd-run", f"--unit={_unit(run_id)}", f"--on-active={timeout:.0f}",
                  "--timer-property=AccuracySec=1s", "--property=Restart=on-failure",
                  "--property=RestartSec=5s", "--collect", *argv])
    else:
        start_detached([*argv, "--wait"], state.file(LOG))


def stop(state: StateDir, which: str, run_id: str) -> None:
    """Take the timer and the boot unit away. A process ends by itself when it sees that it is not needed."""
    if which != SYSTEMD:
        return
    with contextlib.suppress(ToolError):
        # Gone already where this is the timer's own service.
        run_tool([find_tool("systemctl") or "systemctl", "stop", _unit(run_id) + ".timer"])
    remove_boot_unit(state)


def forget_boot_unit() -> None:
    """Have systemd forget the boot unit, which it has read where the node was restarted while it was armed."""
    if kind() == SYSTEMD:
        with contextlib.suppress(ToolError):
            run_tool([find_tool("systemctl") or "systemctl", "daemon-reload"])


def _unit(run_id: str) -> str:
    return f"nodenet-guard-{run_id}"


def _python() -> str:
    if not sys.executable:
        raise StateError("the path of this Python is not known, so no timer can be told to run it")
    return sys.executable


def _write_boot_unit(state: StateDir, agent: str) -> None:
    text = _BOOT_TEXT.format(armed=_escaped(state.file(*ARMED)), state_dir=_escaped(state.path),
                             python=_escaped(_python(), "this Python"), agent=_escaped(agent))
    folder = os.path.join(_UNITS, _WANTS)
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        write_whole(os.path.join(_UNITS, _BOOT_UNIT), text.encode(), 0o644)
        with contextlib.suppress(FileExistsError):
            os.symlink(os.path.join("..", _BOOT_UNIT), os.path.join(folder, _BOOT_UNIT))
    except OSError as error:
        raise NetfilterError(f"{os.path.join(_UNITS, _BOOT_UNIT)} cannot be written, and a reboot would not be rolled "
                             f"back: {error.strerror}") from None


def _escaped(path: str, what: str = "state_dir") -> str:
    """A path as a word of a unit file. Raises ``StateError`` for one that would need more than this."""
    if any(char.isspace() or char in "\"'\\;" for char in path):
        raise StateError(f"{what}: {path!r} has characters that a systemd unit cannot have in a path")
    return path.replace("%", "%%").replace("$", "$$")


def remove_boot_unit(state: StateDir) -> None:
    """Remove the boot unit if it is that of this state directory."""
    path = os.path.join(_UNITS, _BOOT_UNIT)
    try:
        with open(path, encoding="utf-8") as file:
            if f"--state-dir {_escaped(state.path)} " not in file.read():
                return
    except (OSError, StateError):
        return
    for name in (os.path.join(_UNITS, _WANTS, _BOOT_UNIT), path):
        with contextlib.suppress(OSError):
            os.unlink(name)
