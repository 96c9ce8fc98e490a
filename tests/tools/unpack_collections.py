"""Unpacks the collections of a requirements file from the PyPI package ansible: all of it would be 600 MB.

    unpack_collections.py REQUIREMENTS_YML WHEEL DIRECTORY

They land in DIRECTORY/ansible_collections. Fails where the package has no such collection, or one out of the range.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import yaml
from ansible.galaxy.dependency_resolution.versioning import meets_requirements


def unpack(package: zipfile.ZipFile, name: str, wanted: str, directory: Path) -> str:
    """Unpack one collection; its version."""
    folder = "ansible_collections/{}/{}/".format(*name.split("."))
    try:
        version: str = json.loads(package.read(folder + "MANIFEST.json"))["collection_info"]["version"]
    except KeyError:
        sys.exit(f"{package.filename} has no collection {name}")
    if not meets_requirements(version, wanted):
        sys.exit(f"{package.filename} has {name} {version}, and {wanted} is asked for")
    shutil.rmtree(directory / folder, ignore_errors=True)
    package.extractall(directory, [member for member in package.namelist() if member.startswith(folder)])
    return version


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit((__doc__ or "").strip())
    requirements, wheel, directory = map(Path, sys.argv[1:])
    os.umask(0o022)
    with zipfile.ZipFile(wheel) as package:
        for entry in yaml.safe_load(requirements.read_text(encoding="utf-8"))["collections"]:
            version = unpack(package, entry["name"], entry.get("version", "*"), directory)
            print(entry["name"], version)


if __name__ == "__main__":
    main()
