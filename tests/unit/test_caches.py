"""The caches of users' input are bounded."""

from __future__ import annotations

import gc
import pkgutil
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType

import pytest

import certs
import webhook
from tests.builders import container, gpu, pod
from tests.families import busy_decision_input
from webhook.decide import decide
from webhook.model.facts import Facts
from webhook.model.pod import PodManifest
from webhook.model.quantity import parse

#: Each cache of the package: how many results it keeps, and what its keys are. If users' input
#: is a key, the entry has the longest length, and a test below checks that bound.
DECLARED: dict[str, tuple[int | None, str]] = {
    "webhook.config.bundled_examples._texts": (None, "nothing"),
    "webhook.config.custom_resource._spec_schema": (None, "nothing"),
    "webhook.config.messages.known_fields": (None, "nothing"),
    "webhook.decide.fabric_variables.plan_for": (64, "the site's fabrics"),
    "webhook.decide.fabric_variables.fabric_by_setting": (2, "the site's configuration"),
    "webhook.decide.common_part._replaceable_variables": (2, "the site's configuration"),
    "webhook.kube.watched_resources._shared": (1024, "the taints of nodes, as administrators set"),
    "webhook.kube.watched_resources._shared_amounts": (1024, "the amounts that nodes offer"),
    "webhook.model.fabric._pattern": (1024, "the site's globs"),
    "webhook.model.pod.reading.pointer": (4096, "names of fields, indexes, names of the site's"),
    "webhook.model.quantity._read": (1024, "a user's text of at most 64 characters"),
    "webhook.decide.shell.scripts._read": (16, "a user's script of at most 4,096 characters"),
    "webhook.serve.decision_limits._sizes_file": (None, "nothing"),
    "webhook.text.terminal._style": (None, "names of styles in the code"),
}
OURS = ("webhook.", "certs.")
LONG = 2**20
TEXT = "x" * LONG
REQUESTS = 60


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            yield import_module(module.name)


def _caches() -> dict[str, int | None]:
    """Return `maxsize` by name for each functools cache in the modules and their classes."""
    sizes: dict[str, int | None] = {}
    for module in (*_modules(webhook), *_modules(certs)):
        homes = [module, *(member for member in vars(module).values() if isinstance(member, type))]
        for home in homes:
            for value in tuple(vars(home).values()):  # pydantic adds to its classes on access
                if hasattr(value, "cache_parameters") and value.__module__.startswith(OURS):
                    sizes[f"{value.__module__}.{value.__qualname__}"] = value.cache_parameters()[
                        "maxsize"
                    ]
    return sizes


def test_every_cache_is_declared() -> None:
    """A new cache must be listed here, with its size and its keys."""
    assert _caches() == {name: size for name, (size, _) in DECLARED.items()}


def test_unbounded_caches_have_no_users_key() -> None:
    """The keys of the caches without a bound come from the code itself."""
    unbounded = [keys for size, keys in DECLARED.values() if size is None]
    assert set(unbounded) == {"nothing", "names of styles in the code"}


def _of_label(text: str) -> PodManifest:
    return pod(nodeSelector={"nvidia.com/gpu.product": f"Tesla-V100-{text}"})


def _of_term(text: str) -> PodManifest:
    product = {"key": "nvidia.com/gpu.product", "operator": "In", "values": [text]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [product]}]}
    return pod(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )


#: Pods with a long text, one for each place whose text a decision compares with something.
PLACES: dict[str, Callable[[str], PodManifest]] = {
    "resource": lambda text: pod(gpu(limits={f"site.lab/{text}": "1"})),
    "RDMA resource": lambda text: pod(gpu(limits={f"rdma/{text}": "1"})),
    "quantity": lambda text: pod(gpu(count=text)),
    "memory": lambda text: pod(gpu(limits={"memory": text})),
    "annotation": lambda text: pod(annotations={text: ""}),
    "value of an annotation": lambda text: pod(annotations={"a": text}),
    "annotation of ours": lambda text: pod(annotations={f"rdma.lab/{text}": ""}),
    "fabric": lambda text: pod(annotations={"rdma.lab/fabric": text}),
    "networks": lambda text: pod(annotations={"k8s.v1.cni.cncf.io/networks": text}),
    "label": _of_label,
    "key of a label": lambda text: pod(nodeSelector={text: "x"}),
    "value of a term": _of_term,
    "name of a node": lambda text: pod(nodeName=text),
    "container": lambda text: pod(gpu(text, command=["sshd"])),
    "word": lambda text: pod(gpu(command=[text])),
    "variable": lambda text: pod(gpu(env=[{"name": text, "value": "x"}])),
    "value of a variable": lambda text: pod(gpu(env=[{"name": "NCCL_IB_HCA", "value": text}])),
    "mount": lambda text: pod(gpu(volumeMounts=[{"name": "a", "mountPath": text}])),
    "claim": lambda text: pod(
        container(resources={"claims": [{"name": text}]}), resourceClaims=[{"name": text}]
    ),
}


def test_long_texts_are_not_kept() -> None:
    """60 pods, each with a different text of 1 MiB in one of these places, leave under 1 MiB."""
    decision_input, facts = busy_decision_input(), Facts(unlisted_is_unknown=True)
    makers = list(PLACES.values())
    before, text = 0, ""
    tracemalloc.start()
    try:
        for number in range(REQUESTS + len(makers)):
            if number == len(makers):  # each place was used once, so one-time objects exist
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
            text = f"{number}{TEXT}"
            decide(makers[number % len(makers)](text), decision_input)
            facts.namespace(text)
        text = ""
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < LONG
    finally:
        tracemalloc.stop()


def test_a_long_quantity_is_not_remembered() -> None:
    """Only quantities of at most 64 characters are remembered."""
    for text in ("1" * 65, f"9{TEXT}"):
        with pytest.raises(ValueError, match="longer than any quantity \\(64 characters\\)"):
            parse(text)
