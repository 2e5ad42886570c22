"""All files of the device plugins' side, and what could not be written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.plugin.claim_templates_file import claim_template_files
from webhook.diagnose.discover.plugin.device_plugin import (
    PluginFile,
    shared_entries,
    shared_plugin_files,
)
from webhook.diagnose.discover.plugin.networks import network_files
from webhook.diagnose.discover.plugin.operator_policy import operator_policy
from webhook.diagnose.discover.wishes import Wishes


class PluginSide(NamedTuple):
    """What offers the fabrics' resources."""

    files: tuple[PluginFile, ...]
    #: Sentences about what a person must look at.
    notes: tuple[str, ...]


def plugin_side(plans: Sequence[FabricPlan], wishes: Wishes) -> PluginSide:
    """Return the files for all fabrics."""
    entries = shared_entries(plans)
    files = [
        *shared_plugin_files(entries),
        *operator_policy(plans, entries, wishes),
        *network_files(plans, wishes),
        *claim_template_files(plans, wishes),
    ]
    written = {one.plan.name for one in entries}
    notes = [
        f"fabric {plan.name}: no tool shows PCI ids or interfaces of its devices, so the device "
        "plugin cannot select them: add the output of lspci -nn or ibdev2netdev"
        for plan in plans
        if plan.mode in ("shared-device", "host-network") and plan.name not in written
    ]
    notes += [
        f"fabric {one.plan.name}: the selectors are not right for {', '.join(one.selected.wrong)}"
        for one in entries
        if one.selected.wrong
    ]
    return PluginSide(tuple(files), tuple(notes))
