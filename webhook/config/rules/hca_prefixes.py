"""Rules for `hcaPrefixes`, which may match more devices than intended."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config import names
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import ParsedSpec, Violation, file_rule, rule
from webhook.model.quoting import quoted


@rule("warning", "Instead of the prefix, list exact names in hcas if you can.")
def open_prefixes(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that lists a prefix that probably matches more devices than it should.

    A warning: the prefix `mlx5_1` also matches mlx5_10 to mlx5_19, and `mlx5` the bond mlx5_bond_0,
    but the site's nodes may have none of those.
    """
    for index, prefix in enumerate(fabric.hca_prefixes):
        if prefix[-1:].isdigit() and "_" in prefix:
            also = f"{prefix}0 to {prefix}9"
        elif "mlx5_bond_0".startswith(prefix):
            also = "an Ethernet bond, mlx5_bond_0"
        else:
            continue
        yield Violation(("hcaPrefixes", index), f"{quoted(prefix)} also matches {also}")


@file_rule("warning", "Write a longer prefix, or list exact names in hcas.")
def prefixes_of_others(spec: ParsedSpec) -> Iterator[Violation]:
    """Warn about a fabric that lists a prefix that also matches a device that another fabric lists.

    A warning: on a node with that device, pods of the prefix's fabric would use it too, but the two
    fabrics may have different nodes.
    """
    owners = _owners_by_prefix(spec)
    for path, fabric in spec.fabrics():
        for index, prefix in enumerate(fabric.hca_prefixes):
            for owner, (key, written) in owners.get(prefix, {}).items():
                if owner != fabric.name:
                    yield Violation(
                        (*path, "hcaPrefixes", index),
                        f"{quoted(prefix)} also matches {quoted(written)} of {key} in fabric "
                        f"{quoted(owner)}",
                    )
                    break


def _owners_by_prefix(spec: ParsedSpec) -> dict[str, dict[str, tuple[str, str]]]:
    """Return, for each prefix in the file, up to two fabrics that name a device with that prefix.

    The value for a fabric is the name of the list and the device. Two, because one of them may be
    the prefix's own fabric. Names of devices are at most 64 bytes long, so each is truncated to
    the length of every prefix to find all matches.
    """
    listed = (prefix for _, fabric in spec.fabrics() for prefix in fabric.hca_prefixes)
    by_prefix: dict[str, dict[str, tuple[str, str]]] = {
        prefix: {} for prefix in listed if names.is_hca_prefix(prefix)
    }
    lengths = {len(prefix) for prefix in by_prefix}
    for _, fabric in spec.fabrics():
        devices = [("hcas", name) for name in fabric.hcas]
        devices += [("excludeHcas", name) for name in fabric.exclude_hcas]
        for key, written in devices:
            heads = (written[:length] for length in lengths)
            for owners in (by_prefix[head] for head in heads if head in by_prefix):
                if len(owners) < 2:  # noqa: PLR2004
                    owners.setdefault(fabric.name, (key, written))
    return by_prefix
