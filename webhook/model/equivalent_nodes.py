"""Equivalence classes of nodes: the scheduler distinguishes only the names in one.

A fabric has few of them, whatever the number of its nodes, so each decision may look at all. A
label with many values, such as the host name, or the rack in a large cluster, would make a class of
nearly each node. So such a label is *individual*: the classes lack it, and whether their nodes have
a value of it is unknown, except for the host name.

The limits: a label with more than 32 values on the fabrics' nodes is individual. If there are still
more than MAX_CLASSES classes, so is one with more than 8, then 2, then every label. If even that
leaves too many, because the nodes offer too many different amounts, there are no classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import repeat
from types import MappingProxyType
from typing import NamedTuple

from webhook.model.node_availability import Availability
from webhook.model.pod.node_selection import HOSTNAME

#: The maximum number of classes of all fabrics together.
MAX_CLASSES = 512
#: The maximum numbers of values of a label that is not individual, from the first attempt on.
_MAX_VALUES = (32, 8, 2, 0)

#: Node → its labels.
Labels = Mapping[str, Mapping[str, str]]


class EquivalentNodes(NamedTuple):
    """A class: nodes of a fabric with equal resources, availability and labels.

    Labels that are individual may differ.
    """

    names: frozenset[str]
    #: The labels that are not individual.
    labels: Mapping[str, str]
    #: Extended resource → allocatable amount, above zero.
    resources: Mapping[str, int]
    availability: Availability
    #: Names of the fabrics that the nodes may belong to.
    fabric_names: frozenset[str]
    #: The host names of the nodes, if their label is individual.
    host_names: frozenset[str] = frozenset()


class EquivalenceClasses(NamedTuple):
    """The classes of each fabric's nodes, {} above the limits, and the labels that they lack."""

    by_fabric: Mapping[str, tuple[EquivalentNodes, ...]] = MappingProxyType({})
    individual_label_keys: frozenset[str] = frozenset()


NO_CLASSES = EquivalenceClasses()


class _Table(NamedTuple):
    """Nodes with the same label keys, in one coarse class; a column has the values of a label."""

    #: The index of that class among the coarse classes.
    coarse_index: int
    names: list[str]
    #: The labels that all the nodes share.
    shared: dict[str, str]
    #: The other labels: key → the values, in the order of the names.
    columns: dict[str, tuple[str, ...]]


def refine(coarse: Collection[EquivalentNodes], labels: Labels) -> EquivalenceClasses:
    """Divide coarse classes, each with nodes of any labels, by the labels of the nodes."""
    classes_of_fabrics = [node_class for node_class in coarse if node_class.fabric_names]
    tables = _tables(classes_of_fabrics, labels)
    values = _values_by_key(tables)
    for limit in _MAX_VALUES:
        individual = frozenset(key for key, distinct in values.items() if len(distinct) > limit)
        classes = _divide(classes_of_fabrics, tables, individual)
        if len(classes) <= MAX_CLASSES:
            if HOSTNAME in individual:
                hosts = _host_names(tables)
                classes = [_with_host_names(nodes, hosts) for nodes in classes]
            return EquivalenceClasses(_by_fabric(classes), individual)
    return NO_CLASSES


def _tables(coarse: Iterable[EquivalentNodes], labels: Labels) -> list[_Table]:
    tables: list[_Table] = []
    for number, nodes in enumerate(coarse):
        by_keys: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in nodes.names:
            by_keys[tuple(iter(labels[name]))].append(name)
        for keys, names in by_keys.items():
            rows = [tuple(iter(labels[name].values())) for name in names]
            columns = dict(zip(keys, zip(*rows, strict=True), strict=True))
            tables.append(_table(number, names, columns))
    return tables


def _table(coarse_index: int, names: list[str], columns: dict[str, tuple[str, ...]]) -> _Table:
    same = {key for key, column in columns.items() if column.count(column[0]) == len(column)}
    varying = {key: column for key, column in columns.items() if key not in same}
    return _Table(
        coarse_index, names, {key: columns[key][0] for key in columns if key in same}, varying
    )


def _values_by_key(tables: Iterable[_Table]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for table in tables:
        for key, value in table.shared.items():
            values.setdefault(key, set()).add(value)
        for key, column in table.columns.items():
            values.setdefault(key, set()).update(column)
    return values


def _divide(
    coarse: list[EquivalentNodes], tables: Iterable[_Table], individual: frozenset[str]
) -> list[EquivalentNodes]:
    """Divide coarse classes by the labels that are not individual."""
    members: dict[tuple[int, frozenset[tuple[str, str]]], list[str]] = {}
    for table in tables:
        for labels, names in _rows(table, individual):
            members.setdefault((table.coarse_index, frozenset(labels.items())), []).extend(names)
    return [
        coarse[number]._replace(names=frozenset(names), labels=dict(labels))
        for (number, labels), names in members.items()
    ]


def _rows(table: _Table, individual: frozenset[str]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the different labels of a table's nodes, each time with the names of these nodes."""
    shared = {key: value for key, value in table.shared.items() if key not in individual}
    keys = [key for key in table.columns if key not in individual]
    by_row: dict[tuple[str, ...], list[str]] = {}
    rows = zip(*(table.columns[key] for key in keys), strict=True) if keys else repeat(())
    for name, row in zip(table.names, rows, strict=False):  # `repeat` has no end
        by_row.setdefault(row, []).append(name)
    for row, names in by_row.items():
        yield {**shared, **dict(zip(keys, row, strict=True))}, names


def _host_names(tables: Iterable[_Table]) -> dict[str, str]:
    """Return the host names of the nodes with a label for it."""
    hosts: dict[str, str] = {}
    for table in tables:
        if HOSTNAME in table.shared:
            hosts.update(dict.fromkeys(table.names, table.shared[HOSTNAME]))
        elif HOSTNAME in table.columns:
            hosts.update(zip(table.names, table.columns[HOSTNAME], strict=True))
    return hosts


def _with_host_names(nodes: EquivalentNodes, hosts: Mapping[str, str]) -> EquivalentNodes:
    names = frozenset(hosts.get(name, name) for name in nodes.names)
    return nodes._replace(host_names=nodes.names if names == nodes.names else names)


def _by_fabric(classes: Iterable[EquivalentNodes]) -> dict[str, tuple[EquivalentNodes, ...]]:
    by_fabric: dict[str, list[EquivalentNodes]] = {}
    for nodes in classes:
        for fabric in nodes.fabric_names:
            by_fabric.setdefault(fabric, []).append(nodes)
    return {fabric: tuple(classes_of_fabric) for fabric, classes_of_fabric in by_fabric.items()}
