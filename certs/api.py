"""What certificates need of a Kubernetes API server: four requests on plain objects."""

from __future__ import annotations

from typing import Any, Protocol

#: An object as the API server has it, in JSON's types.
Object = dict[str, Any]


class Api(Protocol):
    """An API server. Every method blocks, and raises ClusterError where it got no answer."""

    def read(self, path: str) -> Object | None:
        """Return the object at a path; None if there is none."""

    def create(self, path: str, body: Object) -> bool:
        """Create an object in a collection; False if one of its name is there already."""

    def replace(self, path: str, body: Object) -> bool:
        """Replace an object; False if it is not the one (resourceVersion) of `body` any more."""

    def apply(self, path: str, body: Object) -> bool:
        """Apply (server-side, with force) the fields of `body`, and own them.

        False if the object is not the one (uid, resourceVersion) of `body` any more.
        """
