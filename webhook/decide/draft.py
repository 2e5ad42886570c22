"""The draft of a pod: the only code that edits pods and records patch operations.

Each edit is applied to a copy at once, so the recorded operations form a patch that applies.
Only the nodes along the edited path are copied (copy on write): the pod that came in, and any
part of it that YAML aliases share, stays as it was.
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
    mapping,
    pointer,
    sequence,
)


class Draft:
    """A pod being edited, the operations so far, and the outcomes that they belong to.

    `view`: what has been read of the pod already.
    """

    __slots__ = (
        *("_containers", "_own", "_owned_at", "_pending", "_view"),
        *("mutation", "ops", "outcomes", "pod"),
    )

    def __init__(self, pod: PodManifest, view: Pod | None = None) -> None:
        self.pod = pod
        self._view = view  # None after an edit, until it is asked for
        self._containers = dict(view.read_containers) if view is not None else {}
        self.ops: list[PatchOp] = []
        self.outcomes: list[Outcome] = []
        self.mutation = ""
        self._pending = 0  # operations before this index belong to an outcome
        self._own: dict[int, Json] = {}  # copies made here, kept alive so that their ids stay valid
        self._owned_at: dict[Path, Json] = {}  # copies by path; cleared when an edit may move one

    @property
    def view(self) -> Pod:
        """The pod as it is now; ask again after an edit."""
        if self._view is None:
            self._view = Pod(self.pod, self._containers)
        return self._view

    def container(self, path: Path) -> Container:
        """Return the container at `path` as it is now; ask again after an edit."""
        found = self._containers.get(path)
        return self.view.container(path) if found is None else found

    def get(self, path: Path) -> Json:
        """Return the current value at `path`, None if absent or null; do not keep or edit it."""
        container = self._owned_at.get(path[:CONTAINER_DEPTH])  # most paths lead into one
        return at(self.pod, path) if container is None else at(container, path[CONTAINER_DEPTH:])

    def set(self, path: Path, value: Json) -> None:
        """Set a mapping key to a value; the same operation adds parents that are missing or null.

        Raise ShapeError if a parent is not a mapping. `append` does so if there is no list.
        """
        self._outdate(path)
        parent = self._owned_at.get(path[:-1])  # a shortcut: `_opened` finds it, too
        if parent is None:
            parent, path, value = self._opened(path, value)
        if path[-1] in parent:
            self._forget(parent[path[-1]])
            self._record("replace", path, value)
        else:
            self._record("add", path, value)
        parent[path[-1]] = value

    def append(self, path: Path, *values: Json) -> None:
        """Append values to the list at `path`; create the list if it is missing."""
        found = self.get(path)
        if found is None:
            self.set(path, list(values))
            return
        if not isinstance(found, list):
            sequence(self.pod, path)  # raises, since it is not a list
        self._outdate(path)
        end = pointer(path) + "/-"
        self.ops += [{"op": "add", "path": end, "value": value} for value in values]
        self._owned(path).extend(values)

    def insert(self, path: Path, index: int, *values: Json) -> None:
        """Insert values before `index` of the existing list at `path`."""
        self._outdate(path)
        target = self._owned(path)
        self._owned_at.clear()
        for offset, value in enumerate(values):
            self._record("add", (*path, index + offset), value)
            target.insert(index + offset, value)

    def replace(self, path: Path, value: Json) -> None:
        """Replace the value at `path`, an existing key or list item."""
        self._outdate(path)
        parent = self._owned(path[:-1])
        self._forget(parent[path[-1]])
        self._record("replace", path, value)
        parent[path[-1]] = value

    def remove(self, path: Path) -> None:
        """Remove the existing key or list item at `path`."""
        self._outdate(path)
        parent = self._owned(path[:-1])
        self._forget(parent if isinstance(parent, list) else parent[path[-1]])
        self.ops.append({"op": "remove", "path": pointer(path)})
        del parent[path[-1]]

    def applied(self, where: str, reason: Reason, message: str) -> None:
        """Record that the operations since the last outcome were applied to `where`."""
        ops = tuple(self.ops[self._pending :])
        if not ops:
            raise AssertionError(f"{self.mutation} says applied, but changed nothing")
        self._pending = len(self.ops)
        self.outcomes.append(Outcome(self.mutation, where, "applied", reason, message, ops))

    def already(self, where: str, reason: Reason, message: str) -> None:
        """Record that what the mutation would do is there already."""
        self._verdict(where, "already", reason, message)

    def skipped(self, where: str, reason: Reason, message: str) -> None:
        """Record that the mutation left `where` alone, and why."""
        self._verdict(where, "skipped", reason, message)

    def failed(self, where: str, reason: Reason, message: str) -> None:
        """Record that the pod must not be admitted like this: the decision denies it."""
        self._verdict(where, "failed", reason, message)

    def warned(self, where: str, reason: Reason, message: str) -> None:
        """Record a warning; the user sees it at creation and in the status annotation."""
        self._verdict(where, "warned", reason, message)

    def _verdict(self, where: str, status: Status, reason: Reason, message: str) -> None:
        if len(self.ops) != self._pending:
            raise AssertionError(f"{self.mutation} says {status}, but has operations pending")
        self.outcomes.append(Outcome(self.mutation, where, status, reason, message))

    def _record(self, op: str, path: Path, value: Json) -> None:
        self.ops.append({"op": op, "path": pointer(path), "value": value})

    def _opened(self, path: Path, value: Json) -> tuple[Json, Path, Json]:
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
                    mapping(child, (), below)  # raises
            elif not isinstance(child, dict):
                if child is not None:
                    mapping(self.pod, below)  # raises
                for key in reversed(path[depth + 1 :]):
                    value = {key: value}
                return node, below, value
            node = self._owned_at[below] = self._owned_child(node, step, child)
        return node, path, value

    def _lowest(self, path: Path, depth: int) -> tuple[Json, int]:
        """Return the lowest node on the way to `path` that is known to be owned, and its depth."""
        while depth and self._owned_at:
            node = self._owned_at.get(path[:depth])
            if node is not None:
                return node, depth
            depth -= 1
        return self._root(), 0

    def _owned(self, path: Path) -> Json:
        """Return the node at `path`; copy it and all nodes above it unless this draft made them."""
        node, depth = self._lowest(path, len(path))
        for step in path[depth:]:
            node = self._owned_child(node, step, node[step])
        self._owned_at[path] = node
        return node

    def _outdate(self, path: Path) -> None:
        """Let the view, and what it has read of the containers at `path`, be read again."""
        self._view = None
        if path[0] != "spec":
            return
        if len(path) > CONTAINER_DEPTH:
            self._containers.pop(path[:CONTAINER_DEPTH], None)
        else:
            self._containers.clear()

    def _forget(self, node: Json) -> None:
        """Forget the paths of all copies if `node`, which goes or moves, may contain some."""
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
        mine = child.copy()
        self._own[id(mine)] = mine
        node[step] = mine
        return mine
