# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``plan_report``: what the modules would change on a whole fleet, in one table. Runs on the controller only."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version
from ansible.utils.display import Display
from ansible_collections.metal.nodenet.plugins.plugin_utils.files import write_private
from ansible_collections.metal.nodenet.plugins.plugin_utils.report.fleet import ReportError, read_fleet
from ansible_collections.metal.nodenet.plugins.plugin_utils.report.texts import data, groups, page, summary, table

display = Display()

#: Of the layout of plan.json; apply.yml asks for it.
FORMAT = 1


class ActionModule(ActionBase):
    """Reads the recorded results and writes the plan."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Report."""
        super().run(tmp, task_vars)
        _found, arguments = self.validate_argument_spec(argument_spec={
            "results_dir": {"type": "path", "required": True},
            "hosts": {"type": "list", "elements": "str", "required": True},
            "errors": {"type": "dict", "default": {}},
            "dest": {"type": "path"},
            "snapshot": {"type": "dict", "default": {}},
            "details": {"type": "bool", "default": False},
        })
        errors = {str(host): str(text) for host, text in arguments["errors"].items()}
        try:
            fleet = read_fleet(Path(arguments["results_dir"]), arguments["hosts"], errors)
            paths = self._write(fleet, arguments) if arguments["dest"] else {}
        except (ReportError, OSError) as error:
            raise AnsibleActionFail(f"plan_report: {error}") from error
        lines = table(fleet, arguments["details"])
        # As it is: in a task's result it would be quoted and folded.
        display.display("\n".join(["", *lines, "", summary(fleet), ""]))
        return {"changed": False, "table": lines, "summary": summary(fleet),
                "groups": groups(fleet), "differing_hosts": fleet.changed_hosts, "failed_hosts": list(fleet.failed),
                **paths}

    def _write(self, fleet: Any, arguments: dict[str, Any]) -> dict[str, str]:
        folder = Path(arguments["dest"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        snapshot = {key: arguments["snapshot"].get(key) for key in ("sha256", "source", "path", "services")}
        created = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        versions = {"metal.nodenet": _collection_version(), "ansible-core": ansible_version}
        about = {"created": created, "source": snapshot["source"] or "the variables of the hosts",
                 "snapshot": snapshot["sha256"] or "none",
                 "versions": ", ".join(f"{name} {version}" for name, version in versions.items())}
        plan = {"plan_format": FORMAT, "created": created, "snapshot": snapshot, "versions": versions}
        write_private(str(folder / "plan.json"), (json.dumps(data(fleet, plan), indent=1) + "\n").encode())
        write_private(str(folder / "plan.md"), page(fleet, about).encode())
        return {"plan_json": str(folder / "plan.json"), "plan_md": str(folder / "plan.md")}


def _collection_version() -> str:
    """From galaxy.yml of a checkout, or MANIFEST.json of an installed collection."""
    top = Path(__file__).resolve().parents[2]
    try:
        return str(json.loads((top / "MANIFEST.json").read_text())["collection_info"]["version"])
    except OSError:
        return str(yaml.safe_load((top / "galaxy.yml").read_text())["version"])
