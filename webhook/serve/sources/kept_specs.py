"""The last good specs, which the object keeps in `status.kept` and which outlive every replica.

A bad object can reach the cluster past `/validate` (its webhook was deleted, a backup was restored,
an older version cannot read a new field). Replicas that run then still have the last good
configuration in memory. A replica that starts finds it here, so that all replicas decide alike.

Any replica writes an entry as soon as it has read a spec that it can use. The policy
rdma-webhook-guard-status lets the webhook write only what is the object's own spec at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from webhook.config.custom_resource import CONFIGURATION_NAME, CONFIGURATION_TITLE, MAX_KEPT
from webhook.config.load import LoadedConfiguration, parse_object
from webhook.config.model import API_VERSION, KIND


class KeptSpec(NamedTuple):
    """An entry of `status.kept`."""

    #: metadata.generation of the object that had this spec.
    generation: int
    #: The hash of the configuration, as in the status of pods.
    config: str
    spec: Mapping[str, object]


class LastGood(NamedTuple):
    """A kept spec that this version of the webhook can use."""

    generation: int
    loaded_configuration: LoadedConfiguration


def kept_specs(status: Mapping[str, object]) -> list[KeptSpec]:
    """Return the entries of a status, the newest first; entries of an unknown form are left out."""
    entries = status.get("kept")
    return [*_read(entries)] if isinstance(entries, list) else []


def _read(entries: Iterable[object]) -> Iterator[KeptSpec]:
    for entry in entries:
        fields = entry if isinstance(entry, dict) else {}
        generation, config, spec = (fields.get(name) for name in KeptSpec._fields)
        if isinstance(generation, int) and isinstance(config, str) and isinstance(spec, dict):
            yield KeptSpec(generation, config, spec)


def with_newest(kept: list[KeptSpec], newest: KeptSpec) -> list[KeptSpec] | None:
    """Return the entries to store; None if the newest spec is already the first of them."""
    if kept and kept[0].spec == newest.spec:
        return None
    return [newest, *kept][:MAX_KEPT]


def last_good(kept: Iterable[KeptSpec]) -> LastGood | None:
    """Return the newest entry that this version can use."""
    for entry in kept:
        item = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": CONFIGURATION_NAME},
            "spec": entry.spec,
        }
        # This version may be unable to read it, and a defect in reading must not end the watch.
        with suppress(Exception):
            return LastGood(entry.generation, parse_object(item, CONFIGURATION_TITLE))
    return None
