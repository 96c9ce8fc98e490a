"""The netns connection without a namespace: names, errors, and the command line that it runs."""

from __future__ import annotations

import pathlib
import shlex
import subprocess
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.playbook.play_context import PlayContext
from ansible_collections.metal.nodenet.plugins.connection import netns


class Connection(netns.Connection):
    """With options from a dictionary; Ansible's own way to them is shown by the integration tests."""

    def __init__(self, name: str, ip_executable: str) -> None:
        super().__init__(PlayContext())
        self.values = {"netns": name, "ip_executable": ip_executable}

    def get_option(self, option: str, hostvars: Any = None) -> Any:
        return self.values[option]


@pytest.fixture
def executables(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with an "ip" that prints its arguments, one a line, and enters nothing."""
    script = tmp_path / "ip"
    script.write_text("""#!/bin/sh\n[ "$5" = true ] || printf '%s\\n' "$@"\n""")
    script.chmod(0o755)
    return tmp_path


@pytest.fixture
def namespaces(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    folder = tmp_path / "netns"
    folder.mkdir()
    (folder / "blue").touch()
    monkeypatch.setattr(netns, "NETNS_DIR", str(folder))
    return folder


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../b", "a/b", "-x", "--all", "a b", "a;id", "$(id)", "a\n", "bl\u00fce", "x" * 256, "'", "*"],
)
def test_a_name_that_is_more_than_a_name_is_refused(name: str, executables: pathlib.Path) -> None:
    with pytest.raises(AnsibleConnectionFailure, match="cannot be the name of a network namespace"):
        Connection(name, str(executables / "ip")).exec_command("id")


@pytest.mark.parametrize("name", ["blue", "node-1", "node1.example.com", "_x", "0", "x" * 255])
def test_ordinary_names_are_names(name: str) -> None:
    assert netns._NAME.fullmatch(name)


def test_the_message_about_a_missing_namespace_names_it(executables: pathlib.Path, namespaces: pathlib.Path) -> None:
    with pytest.raises(AnsibleConnectionFailure, match="no network namespace 'green'.*ip netns add green"):
        Connection("green", str(executables / "ip")).exec_command("id")


def test_the_message_about_a_missing_ip_names_it(namespaces: pathlib.Path) -> None:
    with pytest.raises(AnsibleConnectionFailure, match="no executable 'no-such-ip'.*iproute2"):
        Connection("blue", "no-such-ip").exec_command("id")


def test_the_reason_why_a_namespace_cannot_be_entered_is_told(
    executables: pathlib.Path, namespaces: pathlib.Path
) -> None:
    (executables / "ip").write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 255\n")
    with pytest.raises(AnsibleConnectionFailure, match="Cannot enter the network namespace 'blue': Operation not"):
        Connection("blue", str(executables / "ip")).exec_command("id")


def test_an_ip_that_does_not_run_is_told(executables: pathlib.Path, namespaces: pathlib.Path) -> None:
    (executables / "ip").write_bytes(b"\x7fELF nonsense")
    with pytest.raises(AnsibleConnectionFailure, match="ip does not run"):
        Connection("blue", str(executables / "ip")).exec_command("id")


@pytest.mark.parametrize("command", ["/bin/sh -c 'echo ~ && sleep 0'", "A=1 env; exit 3", 'echo "it\'s" | cat'])
def test_the_whole_command_line_runs_inside(command: str, executables: pathlib.Path, namespaces: pathlib.Path) -> None:
    code, stdout, stderr = Connection("blue", str(executables / "ip")).exec_command(command)
    assert (code, stderr) == (0, b"")
    assert stdout.decode().splitlines() == ["netns", "exec", "blue", "/bin/sh", "-c", command]


def test_the_namespace_is_entered_for_a_try_once_per_connection(
    executables: pathlib.Path, namespaces: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    real = subprocess.run

    def run(argv: list[str], check: bool, **kwargs: Any) -> Any:
        tries.append(shlex.join(argv[1:]))
        return real(argv, check=check, **kwargs)

    monkeypatch.setattr(subprocess, "run", run)
    plugin = Connection("blue", str(executables / "ip"))
    plugin.exec_command("id")
    plugin.exec_command("id")
    assert tries == ["netns exec blue true"]


def test_it_is_a_connection_with_pipelining() -> None:
    plugin = Connection("blue", "ip")
    assert plugin.has_pipelining
    assert plugin.transport == "metal.nodenet.netns"
