"""The cross-core flag of every workspace, read off the generated Ascend C."""

from __future__ import annotations

import re

_WRITE = re.compile(r"_to_gm\b.*?\(\s*(\w*workspace\w*)\[")
_SET = re.compile(r"CrossCoreSetFlag<[^>]*>\((\w+)\)")


def flag_ids(ascendc: str) -> dict[str, int]:
    """Flag ids by workspace: the compiler sets the flag after the copy into the workspace."""
    found: dict[str, int] = {}
    written = ""
    for line in ascendc.splitlines():
        if m := _WRITE.search(line):
            written = m[1]
        elif (m := _SET.search(line)) and written:
            if m[1].isdigit():
                found.setdefault(written, int(m[1]))
            written = ""
    return found
