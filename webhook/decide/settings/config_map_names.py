"""The ConfigMaps on which the decision on a pod depends, if they can be read."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.settings.library_files import config_maps_with_library_files
from webhook.decide.settings.script_files import config_maps_with_scripts
from webhook.model.config_maps import config_maps_named_in
from webhook.model.pod import PodManifest


def config_map_names(manifest: PodManifest) -> Iterator[str]:
    """Yield the names of a pod's ConfigMaps with variables, scripts or files of libraries.

    The pod may have any shape.
    """
    yield from config_maps_named_in(manifest)
    yield from config_maps_with_library_files(manifest)
    yield from config_maps_with_scripts(manifest)
