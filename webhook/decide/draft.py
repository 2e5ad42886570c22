"""The draft of a pod: the only code that edits pods and records patch operations.

Each edit is applied to a copy at once, so the recorded operations form a patch that applies.
Only the nodes along the edited path are copied (copy on write): the incoming pod, and any
part of it that YAML aliases share, stays unchanged.
"""

from __future__ import annotations

from webhook.model.decision import Outcome, PatchOp, Reason, Status
from webhook.model.json import Json
from webhook.model.pod import (
    CONTAINER_DEPTH,
    Container,
    Path,
    Pod,
    PodManifest,
    at,
    pointer,
    read_mapping,
    read_sequence,
)

#: Builds an Outcome from its fields in half the time of `Outcome(…)`: each pod has about a dozen.
_new_tuple = tuple.__new__


class Draft:
    """A pod being edited, the operations so far, and their outcomes.

    `view`: an existing view of the pod, with the fields that are already read.
    """

    __slots__ = (
        *("_own", "_owned_at", "_first_pending", "_view", "_viewed"),
        *("mutation_name", "ops", "outcomes", "pod"),
    )

    def __init__(self, pod: PodManifest, view: Pod | None = None) -> None:
        self.pod = pod
        self._view = view
        self._viewed = 0  # the number of operations in the view
        self.ops: list[PatchOp] = []
        self.outcomes: list[Outcome] = []
        self.mutation_name = ""
        self._first_pending = 0  # operations before this index belong to an outcome
        self._own: dict[int, Json] = {}  # copies made here, kept alive so that their ids stay valid
        self._owned_at: dict[Path, Json] = {}  # copies by path; cleared when an edit may move one

    @property
    def view(self) -> Pod:
        """The current pod; get a new view after each edit."""
        if self._view is None or self._viewed != len(self.ops):  # each edit adds an operation
            self._view, self._viewed = Pod(self.pod), len(self.ops)
        return self._view

    def container(self, path: Path) -> Container:
        """Return the current container at `path`; call again after each edit."""
        return self.view.container(path)

    def get(self, path: Path) -> Json:
        """Return the current value at `path`, None if absent or null; do not keep or edit it."""
        container = self._owned_at.get(path[:CONTAINER_DEPTH])  # most paths lead into one
        return at(self.pod, path) if container is None else at(container, path[CONTAINER_DEPTH:])

    def set(self, path: Path, value: Json) -> None:
        """Set a mapping key to a value; the same operation adds parents that are missing or null.

        Raise ShapeError if a parent is not a mapping; `append` raises it if the value is no list.
        """
        parent = self._owned_at.get(path[:-1])  # a shortcut to what `_existing_parent` returns
        if parent is None:
            parent, path, value = self._existing_parent(path, value)
        if path[-1] in parent:
            self._forget(parent[path[-1]])
            self._record("replace", path, value)
        else:
            self._record("add", path, value)
        parent[path[-1]] = value

    def append(self, path: Path, *values: Json) -> None:
        """Append values to the list at `path`; create the list if it is missing."""
        items = self.get(path)
        if items is None:
            self.set(path, list(values))
            return
        if not isinstance(items, list):
            read_sequence(self.pod, path)  # raises, since it is not a list
        end = pointer(path) + "/-"
        self.ops += [{"op": "add", "path": end, "value": value} for value in values]
        self._owned_node(path).extend(values)

    def insert(self, path: Path, index: int, *values: Json) -> None:
        """Insert values before `index` of the existing list at `path`."""
        target = self._owned_node(path)
        self._owned_at.clear()
        for offset, value in enumerate(values):
            self._record("add", (*path, index + offset), value)
            target.insert(index + offset, value)

    def replace(self, path: Path, value: Json) -> None:
        """Replace the value at `path`, an existing key or list item."""
        parent = self._owned_node(path[:-1])
        self._forget(parent[path[-1]])
        self._record("replace", path, value)
        parent[path[-1]] = value

    def remove(self, path: Path) -> None:
        """Remove the existing key or list item at `path`."""
        parent = self._owned_node(path[:-1])
        self._forget(parent if isinstance(parent, list) else parent[path[-1]])
        self.ops.append({"op": "remove", "path": pointer(path)})
        del parent[path[-1]]

    def applied(self, container: str, reason: Reason, message: str) -> None:
        """Record that operations since the last outcome changed `container` ("" for the pod)."""
        ops = tuple(self.ops[self._first_pending :])
        if not ops:
            raise AssertionError(f"{self.mutation_name} reported applied, but changed nothing")
        self._first_pending = len(self.ops)
        fields = self.mutation_name, container, "applied", reason, message, ops
        self.outcomes.append(_new_tuple(Outcome, fields))

    def already(self, container: str, reason: Reason, message: str) -> None:
        """Record that the pod already has what the mutation would add."""
        self._add_outcome(container, "already", reason, message)

    def skipped(self, container: str, reason: Reason, message: str) -> None:
        """Record that the mutation did not apply to `container`, and the reason."""
        self._add_outcome(container, "skipped", reason, message)

    def failed(self, container: str, reason: Reason, message: str) -> None:
        """Record that the pod must not be admitted in this state: the decision denies it."""
        self._add_outcome(container, "failed", reason, message)

    def warned(self, container: str, reason: Reason, message: str) -> None:
        """Record a warning, which the user sees at creation and in the status annotation."""
        self._add_outcome(container, "warned", reason, message)

    def _add_outcome(self, container: str, status: Status, reason: Reason, message: str) -> None:
        if len(self.ops) != self._first_pending:
            raise AssertionError(
                f"{self.mutation_name} reported {status}, but has operations pending"
            )
        fields = self.mutation_name, container, status, reason, message, ()
        self.outcomes.append(_new_tuple(Outcome, fields))

    def _record(self, op: str, path: Path, value: Json) -> None:
        self.ops.append({"op": op, "path": pointer(path), "value": value})

    def _existing_parent(self, path: Path, value: Json) -> tuple[Json, Path, Json]:
        """Return the lowest existing parent, and the path and value to put into it.

        Missing parents become part of that value.
        """
        last = len(path) - 1
        node, start = self._lowest(path, last)
        for depth in range(start, last):
            step, below = path[depth], path[: depth + 1]
            child = node.get(step) if isinstance(node, dict) else node[step]
            if isinstance(child, list):
                if isinstance(path[depth + 1], str):
                    read_mapping(child, (), below)  # raises
            elif not isinstance(child, dict):
                if child is not None:
                    read_mapping(self.pod, below)  # raises
                for key in reversed(path[depth + 1 :]):
                    value = {key: value}
                return node, below, value
            if id(child) not in self._own:
                child = node[step] = child.copy()
                self._own[id(child)] = child
            node = self._owned_at[below] = child
        return node, path, value

    def _lowest(self, path: Path, depth: int) -> tuple[Json, int]:
        """Return the lowest node on the way to `path` that this draft owns, and its depth."""
        while depth and self._owned_at:
            node = self._owned_at.get(path[:depth])
            if node is not None:
                return node, depth
            depth -= 1
        return self._root(), 0

    def _owned_node(self, path: Path) -> Json:
        """Return the node at `path`; copy it and its ancestors, except copies of this draft."""
        node, depth = self._lowest(path, len(path))
        for step in path[depth:]:
            node = self._owned_child(node, step, node[step])
        self._owned_at[path] = node
        return node

    def _forget(self, node: Json) -> None:
        """Forget the paths of all copies if `node`, to be removed or moved, may contain any."""
        if isinstance(node, (dict, list)):
            self._owned_at.clear()

    def _root(self) -> Json:
        if id(self.pod) not in self._own:
            self.pod = self.pod.copy()
            self._own[id(self.pod)] = self.pod
        return self.pod

    def _owned_child(self, node: Json, step: str | int, child: Json) -> Json:
        if id(child) in self._own:
            return child
        copied = child.copy()
        self._own[id(copied)] = copied
        node[step] = copied
        return copied
