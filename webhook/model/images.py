"""How people write the name of a container's image.

`rayproject/ray:2.9.0` is short for `docker.io/rayproject/ray:2.9.0`. The first part of a name is a
registry if it has a dot or a colon, or is `localhost` (distribution/reference, splitDockerDomain).
"""

from __future__ import annotations

from webhook.model.path import Path
from webhook.model.pod import PodManifest, at

_HUB = "docker.io"
_OFFICIAL = "library/"


def image_of(pod: PodManifest, path: Path) -> str:
    """Return the image of the container at `path`, "" if there is none."""
    found = at(pod, (*path, "image"))
    return found if isinstance(found, str) else ""


def spellings_of(image: str) -> tuple[str, ...]:
    """Return an image with and without its registry, each with and without its tag.

    A digest is left out, except from the image as it is written.
    """
    tagged = image.partition("@")[0]
    registry, slash, name = tagged.partition("/")
    if not (slash and ("." in registry or ":" in registry or registry == "localhost")):
        registry, name = _HUB, tagged
    if registry == _HUB:
        name = name.removeprefix(_OFFICIAL)
    untagged = name.partition(":")[0]
    short = (untagged, name)
    return tuple(dict.fromkeys((image, *short, *(f"{registry}/{one}" for one in short))))
