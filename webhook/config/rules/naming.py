"""Rules for names and values that another program rejects; all are errors, since pods break."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from webhook.config import names
from webhook.config.messages import shortened
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import ParsedSpec, Violation, file_rule, rule
from webhook.model import quantity
from webhook.model.fabric import LOOPBACK
from webhook.model.names import capitalized, shortened_list
from webhook.model.nearest import suggestion
from webhook.model.pod import Path
from webhook.model.quoting import quoted

_PLUGIN_DOMAIN = "rdma/"
_SCHEME = "://"
#: More names of fabrics are only counted in a message.
_MAX_NAMES = 20


@rule(
    "error",
    "Write a name of at most 63 lowercase letters, digits and -, such as v100-ib, with a letter "
    "or digit at each end.",
    tolerates_other_errors=True,
)
def fabric_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has a name that is not a DNS label (up to 63 characters: a-z, 0-9, `-`).

    The name is used in annotations, metric labels and messages.
    """
    if not names.is_dns_label(fabric.name):
        yield Violation(("name",), f"{quoted(fabric.name)} is not a DNS label")


@file_rule("error", "Give one of the two fabrics a different name.", tolerates_other_errors=True)
def unique_names(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject two fabrics that have the same name."""
    first: dict[str, int] = {}
    for path, fabric in spec.fabrics():
        before = first.setdefault(fabric.name, path[1])
        if before != path[1]:
            earlier = f"fabrics[{before}]"
            yield Violation(
                (*path, "name"),
                f"{quoted(fabric.name)} is also the name of {earlier}",
            )


@file_rule(
    "error",
    "Set defaults.fabric to the name of a fabric that the file defines, or remove defaults.fabric.",
    tolerates_other_errors=True,
)
def default_fabric(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a configuration that sets `defaults.fabric` to a name that none of its fabrics has."""
    name = spec.model.defaults.fabric
    if name is not None and name not in spec.names:
        hint = suggestion(name, spec.names) or f" ({_fabrics_text(spec.names)})"
        yield Violation(("defaults", "fabric"), f"no fabric is called {quoted(name)}{hint}")


def _fabrics_text(names: Collection[str]) -> str:
    if not names:
        return "the file has none"
    listed = shortened_list([shortened(name) for name in sorted(names)], _MAX_NAMES)
    return f"the only fabric is {listed}" if len(names) == 1 else f"the fabrics are {listed}"


@file_rule(
    "error",
    "Write each image as a separate item, in lowercase and without https://, such as "
    "rayproject/ray*.",
    tolerates_other_errors=True,
)
def image_globs(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a configuration that lists in `nonRootImages` a glob that no image can match.

    An error: the intended images would be assumed to run as root.
    """
    for index, glob in enumerate(spec.model.defaults.non_root_images):
        for text, remedy in _mistakes(glob):
            path = ("defaults", "nonRootImages", index)
            yield Violation(path, f"{quoted(glob)} {text}", remedy)


@file_rule(
    "warning",
    "If the nodes do not limit locked memory, remove nonRootImages; otherwise, correct `memlock`.",
    tolerates_other_errors=True,
)
def images_without_effect(spec: ParsedSpec) -> Iterator[Violation]:
    """Warn about a configuration that has `memlock: unlimited`, so `nonRootImages` has no effect.

    A warning: where memlock is unlimited, it does not matter which user an image runs as.
    """
    defaults = spec.model.defaults
    if defaults.non_root_images and defaults.memlock == "unlimited":
        message = (
            "nonRootImages has no effect if memlock is unlimited, where any user may lock memory"
        )
        yield Violation(("defaults", "nonRootImages"), message)


@rule(
    "error",
    "Write the resource or alias as domain/name, with a domain outside kubernetes.io and at most "
    "63 letters, digits, -, _ and . in the name.",
    tolerates_other_errors=True,
)
def resource_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has a resource or alias other than an extended resource (`domain/name`).

    The domain must be outside kubernetes.io: the API server rejects all other names
    (IsExtendedResourceName).
    """
    for path, name in _resources(fabric):
        if not names.is_extended_resource(name):
            yield Violation(
                path,
                f"{quoted(name)} is not an extended resource",
            )


@rule(
    "error",
    "After rdma/, write only letters, digits and _; the same rule applies to resourceName in the "
    "device plugin's configuration.",
    tolerates_other_errors=True,
)
def plugin_resource_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has a resource `rdma/NAME` that the RDMA device plugin cannot offer.

    The RDMA shared device plugin accepts only letters, digits and `_` in a `resourceName`. An alias
    may have other characters, since users may have written anything.
    """
    for index, resource in enumerate(fabric.resources):
        short = resource.name.removeprefix(_PLUGIN_DOMAIN)
        if short != resource.name and not names.is_plugin_resource(short):
            fixed = "".join(char if char.isalnum() else "_" for char in short[:63])
            yield Violation(
                ("resources", index, "name"),
                f"{quoted(resource.name)} is not a resource that the device plugin can offer",
                f"Write letters, digits and _, such as {_PLUGIN_DOMAIN}{fixed:.63}.",
            )


@rule(
    "error",
    "Write each key as name or domain/name; names and values have at most 63 characters (letters, "
    "digits, -, _ and periods), and start and end with a letter or digit.",
    tolerates_other_errors=True,
)
def label_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has an invalid `nodeSelector` label or an invalid `nodeLabels` key.

    The API server rejects a pod whose nodeSelector contains such a label.
    """
    keys: list[tuple[str, ...]] = [("match", "nodeLabels", key) for key in fabric.match.node_labels]
    keys += [("nodeSelector", key) for key in fabric.node_selector]
    for path in keys:
        if not names.is_label_key(path[-1]):
            yield Violation(
                path, f"{quoted(path[-1])} is not a label key", "Write name or domain/name."
            )
    for key, value in fabric.node_selector.items():
        if not names.is_label_value(value):
            yield Violation(
                ("nodeSelector", key),
                f"{quoted(value)} is not a label value",
                "Write only letters, digits, -, _ and . (at most 63).",
            )


_LIST_VALUES = 'List at least one value, or "*" for any value'
_WRITE_GLOB = (
    "in a glob, use only letters, digits, `-`, `_`, `.` and wildcards (a space in a GPU's name "
    "becomes `-` in its label)."
)


@rule("error", f"{_LIST_VALUES}; {_WRITE_GLOB}", tolerates_other_errors=True)
def label_globs(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that selects nodes by an empty list or a glob that can match no label value.

    Label values cannot contain spaces: GPU feature discovery sets `Tesla-V100-SXM2-32GB`, for
    example.
    """
    lists: list[tuple[Path, list[str]]] = [(("match", "gpuProducts"), fabric.match.gpu_products)]
    lists += [
        (("match", "nodeLabels", key), globs) for key, globs in fabric.match.node_labels.items()
    ]
    for path, globs in lists:
        if not globs and path[-1] != "gpuProducts":
            yield Violation(path, "an empty list matches no value", f"{_LIST_VALUES}.")
        for index, glob in enumerate(globs):
            if not names.is_label_glob(glob):
                text = f"{quoted(glob)} cannot match any label value"
                yield Violation((*path, index), text, capitalized(_WRITE_GLOB))


@rule(
    "error",
    "Use only letters, digits, _, - and . in the variable's name, and do not begin it with a "
    "digit.",
    tolerates_other_errors=True,
)
def variable_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has an invalid variable name in `env`."""
    for name in fabric.env:
        if not names.is_env_name(name):
            yield Violation(
                ("env", name),
                f"{quoted(name)} is not a valid variable name",
            )


@rule(
    "error",
    "Write the name of a single interface, such as eth0; it must not be lo, and must be at most "
    "15 bytes long.",
    tolerates_other_errors=True,
)
def interface_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets a socket interface to `lo`, to a list, or to an invalid name.

    A name has at most 15 bytes, without `=` or `^`. NCCL would accept other forms, but Gloo and UCX
    do not, and all three get the same name. `lo` reaches no other pod.
    """
    for key, name in (
        ("socketInterface", fabric.socket_interface),
        ("hostSocketInterface", fabric.host_socket_interface),
    ):
        if name == LOOPBACK:
            text = "'lo' cannot reach other pods"
            yield Violation((key,), text, "Name an interface that reaches other pods.")
        elif name and not names.is_interface(name):
            yield Violation((key,), f"{quoted(name)} is not a valid interface name")


@rule(
    "error",
    "Write the network as [namespace/]name[@interface], such as rdma/net1 or rdma/net1@rdma0.",
    tolerates_other_errors=True,
)
def network_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that names a network in a form other than `[namespace/]name[@interface]`."""
    networks: list[tuple[Path, str | None]] = [
        (("networks", index), name) for index, name in enumerate(fabric.networks)
    ]
    networks += [
        (("resources", index, "network"), resource.network)
        for index, resource in enumerate(fabric.resources)
    ]
    for path, name in networks:
        if name is not None and not names.is_network(name):
            yield Violation(path, f"{quoted(name)} is not a valid network name")


@rule(
    "error",
    "Set sharedMemory to a size, such as 64Gi, or remove the field.",
    tolerates_other_errors=True,
)
def shared_memory(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets `sharedMemory` to anything but a quantity above zero."""
    written = fabric.shared_memory
    if written is None:
        return
    try:
        enough = quantity.parse(written) > 0
    except ValueError as error:
        yield Violation(("sharedMemory",), str(error))
        return
    if not enough:
        yield Violation(("sharedMemory",), f"{quoted(written)} is not a size")


@file_rule(
    "error",
    "Write the full name of each namespace, without globs.",
    tolerates_other_errors=True,
)
def namespaces(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a configuration that lists an invalid name, or a glob, in `nvlink.allowNamespaces`."""
    for index, name in enumerate(spec.model.nvlink.allow_namespaces):
        if not names.is_dns_label(name):
            yield Violation(
                ("nvlink", "allowNamespaces", index),
                f"{quoted(name)} is not a valid namespace name",
            )


@file_rule(
    "error",
    "Write a domain at the start of each glob, as in example.com/efa*.",
    tolerates_other_errors=True,
)
def foreign_globs(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a configuration that lists in `foreignNics` a glob that names no domain."""
    foreign = spec.model.foreign_nics
    for key, globs in (("resources", foreign.resources), ("annotations", foreign.annotations)):
        for index, glob in enumerate(globs):
            if "/" not in glob or not glob.strip("*?/"):
                yield Violation(("foreignNics", key, index), f"{quoted(glob)} names no domain")


def _resources(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for index, name in enumerate(fabric.match.gpu_resources):
        yield ("match", "gpuResources", index), name
    for index, resource in enumerate(fabric.resources):
        yield ("resources", index, "name"), resource.name
        for position, alias in enumerate(resource.aliases):
            yield ("resources", index, "aliases", position), alias


def _mistakes(glob: str) -> Iterator[tuple[str, str]]:
    """Yield why no image matches a glob, with the remedy; nothing if an image may match."""
    name = _name(glob)
    if not glob.strip():
        yield "matches no image", "Write a name with globs, such as rayproject/ray*."
    elif _SCHEME in glob:
        yield "is a URL", f"Write {quoted(glob.partition(_SCHEME)[2])}."
    elif any(char.isspace() for char in glob):
        yield "has a space", "Write one image in each item of the list."
    elif name != name.lower():
        text = "matches no image, since image names are lowercase"
        yield text, f"Write {quoted(_lowercase_name(glob))}."


def _name(glob: str) -> str:
    """Return a glob without its tag and digest, whose letters may be of any case."""
    tagged = glob.partition("@")[0]
    above, slash, last = tagged.rpartition("/")
    return above + slash + last.partition(":")[0]


def _lowercase_name(glob: str) -> str:
    name = _name(glob)
    return name.lower() + glob[len(name) :]
