"""Results folders as versions left them whose attempts had numbers and no ids."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_ID = re.compile(r"-[0-9a-f]{16}(?=\.\w+$)")


def as_earlier_version(folder: Path) -> Path:
    """Takes all ids from a folder: from names of files, from records, and its own; and all claims."""
    (folder / "records" / "folder-id").unlink(missing_ok=True)
    for claim in folder.glob("records/*/*-r*-m*.[0-9]*"):
        claim.unlink()
    for path in [path for path in folder.glob("*/*/*") if _ID.search(path.name)]:
        plain = path.rename(path.with_name(_ID.sub("", path.name)))
        if plain.suffix == ".json":
            plain.write_text(
                json.dumps(_without_ids(json.loads(plain.read_text())), indent=1, ensure_ascii=False)
            )
    return folder


def _without_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_ids(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_ids(entry) for name, entry in value.items() if name not in ("attempt_id", "claim")}
    return kept | {"schema_version": 4} if "schema_version" in kept else kept
