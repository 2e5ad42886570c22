"""Images: how people write their names, and which are known not to run as root.

An image whose last USER is not root gives its processes no capabilities, so IPC_LOCK does not help
them. A pod's own `runAsUser` takes precedence over its image.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.fabric import Defaults, Globs

# The first part of a name is a registry if it has a dot or a colon, or is `localhost`
# (distribution/reference, splitDockerDomain). `rayproject/ray:2.9.0` is short for
# `docker.io/rayproject/ray:2.9.0`.

_HUB = "docker.io"
_OFFICIAL = "library/"


def image_name_forms(image: str) -> tuple[str, ...]:
    """Return an image with and without its registry, each with and without its tag.

    A digest is left out, except from `image` itself.
    """
    registry, name = _split(image)
    short = (_untagged(name), name)
    return tuple(dict.fromkeys((image, *short, *(f"{registry}/{spelling}" for spelling in short))))


def _split(image: str) -> tuple[str, str]:
    """Return an image's registry, and its name with the tag."""
    tagged = image.partition("@")[0]
    registry, slash, name = tagged.partition("/")
    if not (slash and ("." in registry or ":" in registry or registry == "localhost")):
        registry, name = _HUB, tagged
    return registry, name.removeprefix(_OFFICIAL) if registry == _HUB else name


def _untagged(name: str) -> str:
    return name.partition(":")[0]


class _NonRootImages(NamedTuple):
    """Images that run as one user: the last USER in their Dockerfile, in `source`."""

    globs: Globs
    uid: int
    source: str


def _images(uid: int, source: str, *globs: str) -> _NonRootImages:
    return _NonRootImages(Globs(globs), uid, source)


#: Images for GPUs. The globs match names without registry and tag, so that a mirror's copy counts.
NON_ROOT_IMAGES = (
    _images(1000, "ray-project/ray docker/base-deps/Dockerfile", "rayproject/ray*"),
    _images(
        1000,
        "jupyter/docker-stacks images/docker-stacks-foundation/Dockerfile",
        "jupyter/*-notebook",
        "jupyter/docker-stacks-foundation",
    ),
    _images(
        1000,
        "kubeflow/kubeflow components/example-notebook-servers/base/Dockerfile",
        "kubeflownotebookswg/jupyter-pytorch*",
        "kubeflownotebookswg/jupyter-tensorflow*",
        "kubeflownotebookswg/codeserver-python*",
        "kubeflow/*notebook-servers/*",
    ),
    _images(
        1001,
        "bitnami/containers bitnami/pytorch/2/debian-12/Dockerfile, "
        "bitnami/deepspeed/0/debian-12/Dockerfile",
        "bitnami*/pytorch",
        "bitnami*/deepspeed",
    ),
    _images(
        1000,
        "ai-dynamo/dynamo container/templates/*_runtime.Dockerfile",
        "nvidia/ai-dynamo/*-runtime",
    ),
    _images(2000, "llm-d/llm-d docker/Dockerfile.cuda", "llm-d/llm-d-cuda*"),
)


#: Each glob of NON_ROOT_IMAGES has one of these texts; most images have none.
_MARKS = ("rayproject/", "jupyter", "kubeflow", "bitnami", "ai-dynamo/", "llm-d/")
#: The number of a name's last parts that are compared: a mirror puts its own in front.
_MAX_PARTS = 4


def non_root_user(image: str, defaults: Defaults) -> str:
    """Return whom an image runs as: "uid 1000" if known, "a non-root user" if the site lists it.

    Return "" for any other image, which may run as root.
    """
    non_root_images = defaults.non_root_images
    if non_root_images.texts and any(map(non_root_images.match, image_name_forms(image))):
        return "a non-root user"
    if not any(map(image.__contains__, _MARKS)):
        return ""
    parts = _untagged(_split(image)[1]).rsplit("/", _MAX_PARTS - 1)
    names = ["/".join(parts[first:]) for first in range(len(parts) - 1)]
    for images in NON_ROOT_IMAGES:
        if any(map(images.globs.match, names)):
            return f"uid {images.uid}"
    return ""
