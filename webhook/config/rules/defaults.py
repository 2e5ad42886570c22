"""Rules for `defaults`."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config.messages import quoted
from webhook.config.rules.rule import Parts, Problem

_SCHEME = "://"


def image_globs(parts: Parts) -> Iterator[Problem]:
    """Reject globs in `nonRootImages` that no image can match.

    An error: the images that are meant would count as root's.
    """
    for place, glob in enumerate(parts.model.defaults.non_root_images):
        remedy = _mended(glob)
        if remedy:
            yield Problem(("defaults", "nonRootImages", place), f"{quoted(glob)} {remedy}")


def images_without_effect(parts: Parts) -> Iterator[Problem]:
    """Warn of `nonRootImages` beside `memlock: unlimited`, with which the user does not matter."""
    defaults = parts.model.defaults
    if defaults.non_root_images and defaults.memlock == "unlimited":
        message = "has no effect with memlock: unlimited, with which every user may lock memory"
        yield Problem(("defaults", "nonRootImages"), message)


def _mended(glob: str) -> str:
    """Say why no image matches a glob, and what to write; "" if one may."""
    name = _name(glob)
    if not glob.strip():
        return "matches no image: write a name with globs, such as rayproject/ray*"
    if _SCHEME in glob:
        return f"is a URL: write {quoted(glob.partition(_SCHEME)[2])}"
    if any(char.isspace() for char in glob):
        return "has a space: write one image in each item of the list"
    if name != name.lower():
        return f"matches no image, whose names are in lower case: write {quoted(_lowered(glob))}"
    return ""


def _name(glob: str) -> str:
    """Return a glob without its tag and digest, whose letters may be of any case."""
    tagged = glob.partition("@")[0]
    above, slash, last = tagged.rpartition("/")
    return above + slash + last.partition(":")[0]


def _lowered(glob: str) -> str:
    name = _name(glob)
    return name.lower() + glob[len(name) :]
