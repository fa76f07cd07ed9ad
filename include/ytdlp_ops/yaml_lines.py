"""On which line of a YAML file a field stands: an error names it."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]  # ships no types


def line_of(node: Any, loc: tuple[int | str, ...]) -> int:
    """
    The line of a field, counted from 1; of what should hold it, where it is missing.

    :param node: from `yaml.compose`.
    :param loc: where pydantic found the fault.
    """
    line = node.start_mark.line if node else 0
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == str(step)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
    return int(line) + 1
