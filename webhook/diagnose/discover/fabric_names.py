"""Names for fabrics and resources, short enough to type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from webhook.diagnose.discover.groups import Group

_MAKERS = ("nvidia-", "tesla-", "quadro-", "geforce-", "amd-")


def short_product(product: str) -> str:
    """Return what people call a GPU: "h100" for NVIDIA-H100-80GB-HBM3."""
    name = product.lower()
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    words: list[str] = []
    for word in name.replace("_", "-").replace(".", "-").split("-"):
        words.append(word)
        if any(char.isdigit() for char in word):
            break
    return "-".join(words)


def names_for(groups: Sequence[Group]) -> list[str]:
    """Return a name for each group, as `h100-ib`; rates, cards and numbers where needed."""
    forms = (_plain, _with_rate, _with_card)
    names = [_plain(group) for group in groups]
    for form in forms[1:]:
        twice = {name for name, times in Counter(names).items() if times > 1}
        names = [
            form(group) if name in twice else name
            for name, group in zip(names, groups, strict=True)
        ]
    seen: Counter[str] = Counter()
    for at, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[at] = f"{name}-{seen[name]}"
    return [name[:63].strip("-") for name in names]


def _plain(group: Group) -> str:
    return f"{_gpus(group)}-{'ib' if group.card.link_layer == 'InfiniBand' else 'roce'}"


def _with_rate(group: Group) -> str:
    return f"{_plain(group)}-{group.rate:g}" if group.rate else _plain(group)


def _with_card(group: Group) -> str:
    model = "".join(char if char.isalnum() else "-" for char in (group.model or "").lower())
    return f"{_with_rate(group)}-{model}".replace("connectx-", "cx").strip("-")


def _gpus(group: Group) -> str:
    if group.product:
        return short_product(group.product)
    return "cpu" if group.without_gpus else "rdma"
