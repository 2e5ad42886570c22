"""The forms of names that Kubernetes, Multus, the device plugins and Linux accept.

Sources: apimachinery's util/validation (labels, qualified names, DNS names),
core/v1's IsExtendedResourceName, Linux's IFNAMSIZ and dev_valid_name(),
rdma-core's IBV_SYSFS_NAME_MAX, k8s-rdma-shared-dev-plugin's resource names.
"""

from __future__ import annotations

import re

from webhook.model.annotations import NETWORKS_JSON

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_ENV = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_GLOB = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")
_NICKNAME = re.compile(r"[A-Za-z0-9_]+")
_HCA = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,62})(?::([0-9]{1,3})(?::[0-9]{1,5}){0,2})?")
#: The longest name of an interface in bytes: IFNAMSIZ is 16 with the final NUL.
INTERFACE_BYTES = 15
_SUBDOMAIN_BYTES = 253
#: A quota counts the resource as `requests.DOMAIN/NAME`, which must be a qualified name itself.
_DOMAIN_BYTES = _SUBDOMAIN_BYTES - len("requests.")
_MAX_PORT = 254
#: A label value has at most 63 bytes, but the brackets of a glob are longer than what they match.
_GLOB_BYTES = 253


#: What an RFC 1123 label must be.
LABEL_FORM = "at most 63 lowercase letters, digits and -, without a - at either end"


def is_dns_label(name: str) -> bool:
    """Return whether `name` is an RFC 1123 label, such as the name of a namespace."""
    return bool(_LABEL.fullmatch(name))


def is_dns_subdomain(name: str) -> bool:
    """Return whether `name` is an RFC 1123 subdomain, such as the name of most objects."""
    return len(name) <= _SUBDOMAIN_BYTES and bool(_SUBDOMAIN.fullmatch(name))


def is_extended_resource(name: str) -> bool:
    """Return whether nodes can offer a resource `name`: `domain/name`, not in kubernetes.io."""
    domain, slash, short = name.partition("/")
    return (
        bool(slash)
        and "kubernetes.io" not in domain
        and len(domain) <= _DOMAIN_BYTES
        and is_dns_subdomain(domain)
        and bool(_NAME.fullmatch(short))
    )


def is_plugin_resource(name: str) -> bool:
    """Return whether the RDMA shared device plugin accepts it as `resourceName`: no `-`, no `/`."""
    return bool(_NICKNAME.fullmatch(name))


def is_label_key(key: str) -> bool:
    """Return whether `key` is a label key: `name` or `domain/name`."""
    domain, slash, name = key.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or is_dns_subdomain(domain))


def is_label_value(value: str) -> bool:
    """Return whether it is a label value: empty, or up to 63 letters, digits, `-`, `_` and `.`."""
    return not value or bool(_NAME.fullmatch(value))


def is_label_glob(glob: str) -> bool:
    """Return whether `glob` has only characters of label values and globs, and not too many."""
    return len(glob) <= _GLOB_BYTES and bool(_GLOB.fullmatch(glob))


def is_env_name(name: str) -> bool:
    """Return whether every Kubernetes version accepts `name` as the name of a variable."""
    return bool(_ENV.fullmatch(name)) and name not in (".", "..")


def is_interface(name: str) -> bool:
    """Return whether Linux accepts `name` for an interface.

    It must also be a name that no library reads as a list or a glob.
    """
    if not name or name in (".", "..") or len(name.encode()) > INTERFACE_BYTES:
        return False
    return not any(char.isspace() or char in "/:,^=*%" for char in name)


def is_network(name: str) -> bool:
    """Return whether Multus accepts it: `name`, with an optional `namespace/` and `@interface`."""
    place, at, interface = name.partition("@")
    namespace, slash, short = place.rpartition("/")
    return (
        is_dns_subdomain(short)
        and (not slash or is_dns_label(namespace))
        and (not at or (is_interface(interface) and NETWORKS_JSON.isdisjoint(interface)))
    )


def split_hca(written: str) -> tuple[str, int | None] | None:
    """Return name and port of `name[:port[:rail[:plane]]]`; None if it is not an RDMA device.

    Rail and plane, which NCCL 2.30 and newer read (env.rst, NCCL_IB_HCA), are left out.
    """
    match = _HCA.fullmatch(written)
    if not match or (match[2] and not 1 <= int(match[2]) <= _MAX_PORT):
        return None
    return match[1], int(match[2]) if match[2] else None


def is_hca_prefix(written: str) -> bool:
    """Return whether the name of an RDMA device can begin with `written`."""
    return ":" not in written and split_hca(written + "0") is not None
