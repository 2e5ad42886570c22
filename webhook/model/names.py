"""The lengths and the order of names, and names and counts in sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: The maximum lengths of a DNS label and a DNS subdomain, such as the names of a namespace and of
#: most objects. The API server checks them in bytes; valid names are ASCII.
MAX_LABEL_LENGTH, MAX_SUBDOMAIN_LENGTH = 63, 253
#: The maximum length of the key of a label, and of the name of a resource: `subdomain/name`.
MAX_KEY_LENGTH = MAX_SUBDOMAIN_LENGTH + len("/") + 63
#: So few digits that no name is slow to convert.
_DIGITS = re.compile(r"(\d{1,18})")


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers in names as numbers: node-2 before node-10."""
    parts = _DIGITS.split(name)
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)]


def shortened_list(names: Sequence[str], limit: int = 4) -> str:
    """List at most `limit` names; of more, the first ones and a count: "n1, n2, n3 and 5 more"."""
    return first_names(names, max_names=limit if len(names) <= limit else max(limit - 1, 1))


def first_names(names: Sequence[str], *, max_names: int) -> str:
    """Join names with commas; beyond `max_names`, only count the rest."""
    suffix = f" and {len(names) - max_names:,} more" if len(names) > max_names else ""
    return ", ".join(names[:max_names]) + suffix


def enumerated(names: Sequence[str], conjunction: str = "and") -> str:
    """Join names as in a sentence: "a", "a and b", "a, b and c"."""
    return f" {conjunction} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 node", "1,200 nodes"; the plural must end with -s."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def capitalized(clause: str) -> str:
    """Return a clause with a capital letter at its start."""
    return clause[:1].upper() + clause[1:]


def uncapitalized(sentence: str) -> str:
    """Return a sentence with a small letter at its start, unless that begins an acronym."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]
