"""Rules for names and values that another program rejects; all are errors, since pods break."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config import names
from webhook.config.messages import listed, quoted
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import ParsedSpec, Violation, file_rule, rule
from webhook.model import quantity
from webhook.model.fabric import LOOPBACK
from webhook.model.nearest import suggestion
from webhook.model.pod import Path

_PLUGIN_DOMAIN = "rdma/"
_SCHEME = "://"


@rule("error", per_value=True)
def fabric_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric's name that is not a DNS label: lowercase letters, digits, `-`, at most 63.

    The name is used in annotations, metric labels and messages.
    """
    if not names.is_dns_label(fabric.name):
        yield Violation(
            ("name",),
            f"{quoted(fabric.name)} must be at most 63 lowercase letters, digits and -, such as "
            "v100-ib",
        )


@file_rule("error", per_value=True)
def unique_names(parts: ParsedSpec) -> Iterator[Violation]:
    """Reject two fabrics with the same name."""
    first: dict[str, int] = {}
    for path, fabric in parts.fabrics():
        before = first.setdefault(fabric.name, path[1])
        if before != path[1]:
            earlier = f"fabrics[{before}]"
            yield Violation(
                (*path, "name"),
                f"{quoted(fabric.name)} is also the name of {earlier}: rename one of them",
            )


@file_rule("error", per_value=True)
def default_fabric(parts: ParsedSpec) -> Iterator[Violation]:
    """Reject a `defaults.fabric` that is not in the file."""
    name = parts.model.defaults.fabric
    if name is not None and name not in parts.names:
        there = listed(sorted(parts.names))
        hint = suggestion(name, parts.names) or (
            f": the fabrics are {there}" if there else ": the file has none"
        )
        yield Violation(("defaults", "fabric"), f"no fabric is called {quoted(name)}{hint}")


@file_rule("error", per_value=True)
def image_globs(parts: ParsedSpec) -> Iterator[Violation]:
    """Reject globs in `nonRootImages` that no image can match.

    An error: the intended images would count as running as root.
    """
    for index, glob in enumerate(parts.model.defaults.non_root_images):
        remedy = _mended(glob)
        if remedy:
            yield Violation(("defaults", "nonRootImages", index), f"{quoted(glob)} {remedy}")


@file_rule("warning", per_value=True)
def images_without_effect(parts: ParsedSpec) -> Iterator[Violation]:
    """Warn about `nonRootImages` with `memlock: unlimited`, where the user does not matter."""
    defaults = parts.model.defaults
    if defaults.non_root_images and defaults.memlock == "unlimited":
        message = "has no effect with memlock: unlimited, which lets every user lock memory"
        yield Violation(("defaults", "nonRootImages"), message)


@rule("error", per_value=True)
def resource_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject GPU resources, RDMA resources and aliases that are not `domain/name`.

    The API server rejects other names, including those in kubernetes.io (IsExtendedResourceName).
    """
    for path, name in _resources(fabric):
        if not names.is_extended_resource(name):
            yield Violation(
                path,
                f"{quoted(name)} is not an extended resource: write domain/name, with a domain "
                "outside kubernetes.io and a name of at most 63 letters, digits, -, _ and .",
            )


@rule("error", per_value=True)
def plugin_resource_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a resource `rdma/NAME` whose name has characters other than letters, digits and `_`.

    The RDMA shared device plugin rejects any other `resourceName`, so no node can offer it. An
    alias may have other characters, since users may have written anything.
    """
    for index, resource in enumerate(fabric.resources):
        short = resource.name.removeprefix(_PLUGIN_DOMAIN)
        if short != resource.name and not names.is_plugin_resource(short):
            fixed = "".join(char if char.isalnum() else "_" for char in short[:63])
            yield Violation(
                ("resources", index, "name"),
                f"{quoted(resource.name)}: the device plugin accepts only letters, digits and _, "
                f"such as {_PLUGIN_DOMAIN}{fixed:.63}",
            )


@rule("error", per_value=True)
def label_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject invalid label keys in `nodeLabels`, and invalid keys and values in `nodeSelector`.

    The API server rejects a pod whose nodeSelector contains one.
    """
    keys: list[tuple[str, ...]] = [("match", "nodeLabels", key) for key in fabric.match.node_labels]
    keys += [("nodeSelector", key) for key in fabric.node_selector]
    for path in keys:
        if not names.is_label_key(path[-1]):
            yield Violation(
                path, f"{quoted(path[-1])} is not a label key: write name or domain/name"
            )
    for key, value in fabric.node_selector.items():
        if not names.is_label_value(value):
            yield Violation(
                ("nodeSelector", key),
                f"{quoted(value)} is not a label value: write at most 63 letters, digits, -, "
                "_ and .",
            )


@rule("error", per_value=True)
def label_globs(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject globs of node labels that no label value can match.

    Values have no spaces, for example: GPU feature discovery sets `Tesla-V100-SXM2-32GB`.
    """
    lists: list[tuple[Path, list[str]]] = [(("match", "gpuProducts"), fabric.match.gpu_products)]
    lists += [
        (("match", "nodeLabels", key), globs) for key, globs in fabric.match.node_labels.items()
    ]
    for path, globs in lists:
        if not globs and path[-1] != "gpuProducts":
            yield Violation(path, 'matches no value: list the values, or write "*" for any')
        for index, glob in enumerate(globs):
            if not names.is_label_glob(glob):
                yield Violation(
                    (*path, index),
                    f"{quoted(glob)} matches no label value: values consist of letters, digits, "
                    "-, _ and . (a space in a GPU's name becomes a - in its label)",
                )


@rule("error", per_value=True)
def variable_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject invalid names of variables in `env`."""
    for name in fabric.env:
        if not names.is_env_name(name):
            yield Violation(
                ("env", name),
                f"{quoted(name)} is not the name of a variable: write letters, digits, _, - "
                "and ., and do not begin with a digit",
            )


@rule("error", per_value=True)
def interface_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject socket interfaces with `=`, `^`, a list, or more than 15 bytes, and `lo`.

    NCCL would accept such forms, but Gloo and UCX do not, and all three get the same name. `lo`
    reaches no other pod.
    """
    for key, name in (
        ("socketInterface", fabric.socket_interface),
        ("hostSocketInterface", fabric.host_socket_interface),
    ):
        if name == LOOPBACK:
            yield Violation((key,), "'lo' cannot reach other pods: name an interface that can")
        elif name and not names.is_interface(name):
            yield Violation(
                (key,),
                f"{quoted(name)} must be the name of one interface, of at most "
                f"{names.INTERFACE_BYTES} bytes, such as eth0",
            )


@rule("error", per_value=True)
def network_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject networks that are not `[namespace/]name[@interface]`, the form that Multus reads."""
    networks: list[tuple[Path, str | None]] = [
        (("networks", index), name) for index, name in enumerate(fabric.networks)
    ]
    networks += [
        (("resources", index, "network"), resource.network)
        for index, resource in enumerate(fabric.resources)
    ]
    for path, name in networks:
        if name is not None and not names.is_network(name):
            yield Violation(
                path,
                f"{quoted(name)} is not a network: write namespace/name or "
                "namespace/name@interface",
            )


@rule("error", per_value=True)
def shared_memory(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a `sharedMemory` that is not a quantity above zero."""
    written = fabric.shared_memory
    if written is None:
        return
    try:
        enough = quantity.parse(written) > 0
    except ValueError as error:
        yield Violation(("sharedMemory",), str(error))
        return
    if not enough:
        yield Violation(
            ("sharedMemory",),
            f"{quoted(written)} is not a size: write, for example, 64Gi, or leave it out",
        )


@file_rule("error", per_value=True)
def namespaces(parts: ParsedSpec) -> Iterator[Violation]:
    """Reject invalid namespace names in `nvlink.allowNamespaces`, including globs."""
    for index, name in enumerate(parts.model.nvlink.allow_namespaces):
        if not names.is_dns_label(name):
            yield Violation(
                ("nvlink", "allowNamespaces", index),
                f"{quoted(name)} is not the name of a namespace: write lowercase letters, "
                "digits and -, without globs",
            )


@file_rule("error", per_value=True)
def foreign_globs(parts: ParsedSpec) -> Iterator[Violation]:
    """Reject globs in `foreignNics` that are not `domain/name`, or that match everything."""
    foreign = parts.model.foreign_nics
    for key, globs in (("resources", foreign.resources), ("annotations", foreign.annotations)):
        for index, glob in enumerate(globs):
            if "/" not in glob or not glob.strip("*?/"):
                yield Violation(
                    ("foreignNics", key, index),
                    f"{quoted(glob)} must be domain/name with globs, such as example.com/efa*",
                )


def _resources(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for index, name in enumerate(fabric.match.gpu_resources):
        yield ("match", "gpuResources", index), name
    for index, resource in enumerate(fabric.resources):
        yield ("resources", index, "name"), resource.name
        for position, alias in enumerate(resource.aliases):
            yield ("resources", index, "aliases", position), alias


def _mended(glob: str) -> str:
    """Explain why no image matches a glob, with a remedy; "" if an image may match."""
    name = _name(glob)
    if not glob.strip():
        return "matches no image: write a name with globs, such as rayproject/ray*"
    if _SCHEME in glob:
        return f"is a URL: write {quoted(glob.partition(_SCHEME)[2])}"
    if any(char.isspace() for char in glob):
        return "has a space: write one image in each item of the list"
    if name != name.lower():
        return f"matches no image, since image names are lowercase: write {quoted(_lowered(glob))}"
    return ""


def _name(glob: str) -> str:
    """Return a glob without its tag and digest, whose letters may be of any case."""
    tagged = glob.partition("@")[0]
    above, slash, last = tagged.rpartition("/")
    return above + slash + last.partition(":")[0]


def _lowered(glob: str) -> str:
    name = _name(glob)
    return name.lower() + glob[len(name) :]
