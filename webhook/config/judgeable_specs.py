"""The parts of a spec that the rules may judge if some of its fields are wrong or unknown."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.config.messages import intended_field
from webhook.config.model import Entry, FabricConfigurationSpec, FabricEntry
from webhook.config.rules import ParsedSpec, Rule
from webhook.model.pod import Path

#: The maximum number of unknown fields compared with known ones before anything is shown.
_MAX_UNKNOWN = 100
_Entry = TypeVar("_Entry", bound=Entry)


class JudgeableSpecs(NamedTuple):
    """The same spec with more and more left out, for rules that need more certainty."""

    #: Without its wrong fields: for rules that check values one by one.
    without_wrong_fields: ParsedSpec
    #: And without fabrics with a wrong value: for errors that compare fields.
    without_broken_fabrics: ParsedSpec
    #: And without fabrics with a probably misspelled field: for warnings.
    without_doubtful_fabrics: ParsedSpec

    def of(self, rule: Rule) -> ParsedSpec:
        """Return the parts that a rule may judge without reporting consequences of other errors."""
        if rule.tolerates_other_errors:
            return self.without_wrong_fields
        is_error = rule.level == "error"
        return self.without_broken_fabrics if is_error else self.without_doubtful_fabrics


def complete_specs(model: FabricConfigurationSpec) -> JudgeableSpecs:
    """Return the specs of a file whose fields are all right: three times the whole spec."""
    names = frozenset(fabric.name for fabric in model.fabrics)
    spec = ParsedSpec(model=model, positions=tuple(range(len(model.fabrics))), names=names)
    return JudgeableSpecs(spec, spec, spec)


def partial_specs(data: dict[str, object], errors: list[ErrorDetails]) -> JudgeableSpecs:
    """Read a spec that has wrong or unknown fields."""
    listed = data.get("fabrics")
    fabrics = listed if isinstance(listed, list) else []
    head, _ = _read(FabricConfigurationSpec, {**data, "fabrics": []})
    assert head is not None
    readable, broken = {}, set()
    for index, raw in enumerate(fabrics):
        fabric, valid = _read(FabricEntry, raw)
        if fabric is not None:
            readable[index] = fabric
        if not valid:
            broken.add(index)
    names = (raw.get("name") for raw in fabrics if isinstance(raw, dict))
    without_wrong_fields = ParsedSpec(
        model=head.model_copy(update={"fabrics": list(readable.values())}),
        positions=tuple(readable),
        names=frozenset(str(name) for name in names if name is not None),
        default_unsure=any(_hides_default(error) for error in errors[:_MAX_UNKNOWN]),
    )
    without_broken_fabrics = without_wrong_fields.without(broken)
    return JudgeableSpecs(
        without_wrong_fields,
        without_broken_fabrics,
        without_broken_fabrics.without(_doubtful_fabrics(errors)),
    )


def _doubtful_fabrics(errors: list[ErrorDetails]) -> set[int]:
    """Return the fabrics with an unknown field that is probably a misspelled known field.

    Such a field is absent for every rule, which would then blame this fabric or others for it.
    """
    unknown = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    comparable = len(unknown) <= _MAX_UNKNOWN
    return {
        path[1]
        for path in unknown
        if path[0] == "fabrics"
        and isinstance(path[1], int)
        and not (comparable and not intended_field(path))
    }


def _hides_default(error: ErrorDetails) -> bool:
    """Return whether an error may be the reason why `defaults.fabric` is unknown."""
    path = error["loc"]
    if error["type"] == "extra_forbidden":
        path = (*path[:-1], intended_field(path))
    return path in (("defaults",), ("defaults", "fabric"), ("fabric",))


def _read(model: type[_Entry], raw: object) -> tuple[_Entry | None, bool]:
    """Read a mapping without its wrong fields; return None if even that is impossible.

    The second value is whether the mapping is valid apart from unknown fields, which do no harm:
    no known field has a wrong value.
    """
    valid = True
    while True:
        try:
            return model.model_validate(raw), valid
        except ValidationError as error:
            errors = error.errors(include_url=False)
            valid = valid and all(details["type"] == "extra_forbidden" for details in errors)
            fields = {_field(details) for details in errors}
            if () in fields:
                return None, valid
            raw = _without(raw, fields)


def _field(error: ErrorDetails) -> Path:
    """Return the field to leave out: for an item its list, for a missing field its parent."""
    path = error["loc"][: -1 if error["type"] == "missing" else None]
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


def _without(node: object, omitted: set[Path]) -> object:
    """Copy mappings, and lists of mappings, without the fields at the `omitted` paths."""
    if not omitted:
        return node
    below = _by_first_step(omitted)
    no_paths: set[Path] = set()
    if isinstance(node, list):
        return [_without(item, below.get(index, no_paths)) for index, item in enumerate(node)]
    assert isinstance(node, dict)
    return {
        key: _without(value, deeper)
        for key, value in node.items()
        if () not in (deeper := below.get(key, no_paths))
    }


def _by_first_step(paths: set[Path]) -> dict[str | int, set[Path]]:
    """Group paths by their first step, and remove that step."""
    below: dict[str | int, set[Path]] = {}
    for first, *rest in paths:
        below.setdefault(first, set()).add(tuple(rest))
    return below
