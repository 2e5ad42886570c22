"""The ConfigMaps on which the decision on a pod depends, if they can be read."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.settings.nccl_files import config_maps_with_nccl_files
from webhook.decide.settings.script_files import config_maps_with_scripts
from webhook.model.config_maps import config_maps_named_in
from webhook.model.pod import PodManifest


def config_maps_of_pod(manifest: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps with variables or scripts of a pod, in any shape."""
    yield from config_maps_named_in(manifest)
    yield from config_maps_with_nccl_files(manifest)
    yield from config_maps_with_scripts(manifest)
