"""Options of serving engines that name devices or a transport, as variables of libraries.

    engine  option                                           variable
    ------  ------                                           --------
    SGLang  --disaggregation-ib-device LIST                  MOONCAKE_DEVICE; MORI_RDMA_DEVICES with
                                                               the backend mori; none with another
    SGLang  --mooncake-ib-device LIST                        MOONCAKE_DEVICE
    SGLang  --hicache-storage-backend-extra-config JSON      those of a Mooncake connector
    vLLM    --kv-transfer-config JSON                        as below
              mooncake_protocol, protocol  (Mooncake's)      MOONCAKE_PROTOCOL
              device_name                  (Mooncake's)      MOONCAKE_DEVICE
              backends                     (NIXL's)          SGLANG_DISAGGREGATION_NIXL_BACKEND

The variables are those with the same meaning; vLLM itself reads none of them. Invalid JSON names
nothing.

Sources: SGLang 0.5, python/sglang/srt/server_args.py, disaggregation/mori/conn.py and
mem_cache/storage/mooncake_store/mooncake_store.py; vLLM 0.11, vllm/distributed/kv_transfer/
kv_connector/v1/nixl_connector.py, mooncake_connector.py and multi_connector.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.decide.settings.setting import UNKNOWN_VALUE
from webhook.decide.shell.argv import Word
from webhook.model.pod import fields_or_empty
from webhook.model.transport_variables import NIXL_BACKENDS

_MOONCAKE_DEVICES = "MOONCAKE_DEVICE"
_DISAGGREGATION_IB_DEVICE = "--disaggregation-ib-device"
_MOONCAKE_IB_DEVICE = "--mooncake-ib-device"
#: The option that chooses the library for the devices of --disaggregation-ib-device; the default is
#: Mooncake.
_BACKEND = "--disaggregation-transfer-backend"
_VLLM, _HICACHE = "--kv-transfer-config", "--hicache-storage-backend-extra-config"
#: The options that name devices or a transport; vLLM also accepts underscores.
ENGINE_OPTIONS = (
    *(_DISAGGREGATION_IB_DEVICE, _MOONCAKE_IB_DEVICE),
    *(_VLLM, "--kv_transfer_config", _HICACHE),
)
#: The keys of a Mooncake connector's configuration, and their variables.
_MOONCAKE_KEYS = {
    "protocol": "MOONCAKE_PROTOCOL",
    "mooncake_protocol": "MOONCAKE_PROTOCOL",
    "device_name": _MOONCAKE_DEVICES,
}
#: The longest JSON that is read, in characters; the documented examples have less than 1000.
_MAX_JSON = 4096


class EngineSetting(NamedTuple):
    """A variable that an option stands for."""

    option: str
    name: str
    value: str  #: UNKNOWN_VALUE if only the running container knows it


def engine_settings(words: Sequence[Word]) -> Iterator[EngineSetting]:
    """Yield what the options of an engine, the first word, stand for."""
    chosen = _chosen(words)
    for option, name in _device_options(chosen.get(_BACKEND) or "mooncake"):
        if option in chosen:
            yield EngineSetting(option, name, chosen[option] or UNKNOWN_VALUE)
    for option in (_VLLM, _HICACHE):
        parsed = _parsed(chosen.get(option) or "")
        for connector, configuration in _connectors(option, parsed):
            for name, text in _variables(connector, configuration):
                yield EngineSetting(option, name, text)


def _chosen(words: Sequence[Word]) -> dict[str, Word]:
    """Return the options and their last values, None if unknown."""
    chosen: dict[str, Word] = {}
    for word, following in zip(words, (*words[1:], None), strict=True):
        option, equals, value = (word or "").partition("=")
        if option in ENGINE_OPTIONS or option == _BACKEND:
            chosen[option.replace("_", "-")] = value if equals else following
    return chosen


def _device_options(backend: str) -> Iterator[tuple[str, str]]:
    """Yield the options that list devices, and the variable that each stands for."""
    yield _MOONCAKE_IB_DEVICE, _MOONCAKE_DEVICES
    if backend.startswith(("mooncake", "mori")):
        name = "MORI_RDMA_DEVICES" if backend == "mori" else _MOONCAKE_DEVICES
        yield _DISAGGREGATION_IB_DEVICE, name


def _parsed(text: str) -> object:
    """Return the value of a JSON text; None if it is invalid or too long."""
    try:
        return json.loads(text) if len(text) <= _MAX_JSON else None
    except (ValueError, RecursionError):
        return None


def _connectors(option: str, value: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the connectors in an option's value: the lower-case name of each, its configuration.

    vLLM's MultiConnector has a list of connectors in its own configuration.
    """
    if option == _HICACHE:
        yield "mooncake", fields_or_empty(value)
        return
    pending = [value]
    while pending:
        connector = fields_or_empty(pending.pop())
        configuration = fields_or_empty(connector.get("kv_connector_extra_config"))
        yield str(connector.get("kv_connector")).lower(), configuration
        inner = configuration.get("connectors")
        pending += inner if isinstance(inner, list) else ()


def _variables(connector: str, configuration: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the variables for a connector's configuration."""
    keys = _MOONCAKE_KEYS if "mooncake" in connector else {}
    for key, name in keys.items():
        value = configuration.get(key)
        if isinstance(value, str):
            yield name, value
    backends = configuration.get("backends")
    if "nixl" in connector and isinstance(backends, list):
        yield NIXL_BACKENDS[0], ",".join(map(str, backends))
