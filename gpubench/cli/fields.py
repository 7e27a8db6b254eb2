"""Values of trial fields as they were given on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpubench.basics.errors import UsageError
from gpubench.schema.trial_fields import ABOUT


def read_fields(named: Mapping[str, str], texts: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Trial field -> its values as text: those with an option of their own, and what --set gives.

    And trial field -> what the user called it, for messages.
    Raises UsageError for a field that is given twice.
    """
    from gpubench.plan.values import check_field

    fields = dict(named)
    typed = {name: option.name for name in fields if (option := ABOUT[name].option)}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set: {text!r} is not FIELD=VALUES")
        field = check_field(name.strip().replace("-", "_"))
        if field in fields:
            both = f"--set {field}={fields[field]},{value}"
            raise UsageError(f"{field} is given twice; give all its values at once: {both}")
        fields[field] = value
        typed[field] = f"--set {field}"
    return fields, typed
