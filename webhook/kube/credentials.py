"""The credentials of a client: a kubeconfig or a pod's account, changed by options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_incluster_config
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger
from urllib3 import disable_warnings
from urllib3.exceptions import InsecureRequestWarning

from webhook.errors import ClusterError
from webhook.kube.access import UNCHANGED, Overrides, exists, own_namespace

#: The name of a context that exists in memory only.
_OVERRIDDEN = "the options' context"
_Hook = Callable[[Configuration], None]


def official_client(kubeconfig: Path | None, overrides: Overrides) -> ApiClient:
    """Return a client for a kubeconfig, or for the pod's service account without one.

    Nothing is sent yet. Raises ClusterError if the credentials cannot be read.
    """
    if kubeconfig and not exists(kubeconfig) and not overrides.server:
        raise ClusterError(f"the kubeconfig {kubeconfig} does not exist (set --kubeconfig)")
    if part := overrides.part_of_kubeconfig if kubeconfig is None else "":
        raise ClusterError(f"{part} is not available without a kubeconfig")
    for file in overrides.files:
        if not Path(file).is_file():
            raise ClusterError(f"there is no file {file}")
    configuration = Configuration()
    configuration.retries = False
    try:
        if kubeconfig is None:
            # The client reads the token again each minute.
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        elif exists(kubeconfig):
            _load(kubeconfig, overrides, configuration)
        _override(configuration, overrides)
        return ApiClient(configuration)
    except Exception as error:
        source = kubeconfig or "the service account"
        raise ClusterError(f"cannot connect with {source}: {_unreadable(error)}") from error


def context_namespace(kubeconfig: Path | None, context: str, environment: Mapping[str, str]) -> str:
    """Return the namespace of a context ("" for the current one) or of this pod.

    It is `default` if they name none, as for kubectl. Raises ClusterError if the kubeconfig cannot
    be read.
    """
    if kubeconfig is None:
        return own_namespace(environment) or "default"
    if not exists(kubeconfig):
        return "default"
    try:
        selected = _context(_merged(kubeconfig), context).value
        return str(selected.get("namespace") or "default")
    except Exception as error:
        raise ClusterError(f"cannot connect with {kubeconfig}: {_unreadable(error)}") from error


def _merged(kubeconfig: Path) -> ConfigNode:
    """Return the content of all files of a kubeconfig, each node with its file."""
    merged: ConfigNode | None = KubeConfigMerger(  # type: ignore[no-untyped-call]
        str(kubeconfig)
    ).config
    if merged is None:
        raise ConfigException("it is empty")
    return merged


def _context(merged: ConfigNode, name: str) -> ConfigNode:
    """Return a context; "" selects the current one."""
    contexts = merged["contexts"]
    selected = name or merged["current-context"]
    context: ConfigNode = contexts.get_with_name(selected)["context"]
    return context


def _load(kubeconfig: Path, overrides: Overrides, configuration: Configuration) -> None:
    """Configure a client by a context, with another cluster or user if overridden."""
    merged = _merged(kubeconfig)
    context = overrides.context or None
    if overrides.cluster or overrides.user:
        context = _OVERRIDDEN
        merged.value["contexts"].append(_overridden(merged, overrides))
    KubeConfigLoader(  # type: ignore[no-untyped-call]
        config_dict=merged, active_context=context, config_base_path=None
    ).load_and_set(configuration)


def _overridden(merged: ConfigNode, overrides: Overrides) -> ConfigNode:
    """Return a copy of a context with another cluster or user; ConfigException if unknown."""
    context = _context(merged, overrides.context)
    changed = dict(context.value)
    for key, name in (("cluster", overrides.cluster), ("user", overrides.user)):
        if name:
            merged[f"{key}s"].get_with_name(name)
            changed[key] = name
    content = {"name": _OVERRIDDEN, "context": changed}
    return ConfigNode(  # type: ignore[no-untyped-call]
        _OVERRIDDEN, content, context.path
    )


def _override(configuration: Configuration, overrides: Overrides) -> None:
    """Apply overrides outside the context, also when the client's library renews the token.

    The library then sets everything again, this hook included.
    """
    renew: _Hook | None = configuration.refresh_api_key_hook
    _apply(configuration, overrides)
    if renew is None or overrides == UNCHANGED:
        return

    def hook(renewed: Configuration) -> None:
        assert renew is not None
        renew(renewed)
        _override(renewed, overrides)

    configuration.refresh_api_key_hook = hook  # type: ignore[assignment]


def _apply(configuration: Configuration, overrides: Overrides) -> None:
    if overrides.server:
        host = overrides.server if "://" in overrides.server else f"https://{overrides.server}"
        configuration.host = host.rstrip("/")
    if overrides.token:
        configuration.api_key["BearerToken"] = f"Bearer {overrides.token}"
    configuration.ssl_ca_cert = overrides.certificate_authority or configuration.ssl_ca_cert
    configuration.cert_file = overrides.client_certificate or configuration.cert_file
    configuration.key_file = overrides.client_key or configuration.key_file
    configuration.tls_server_name = overrides.tls_server_name or configuration.tls_server_name
    if overrides.insecure:
        configuration.verify_ssl = False
        disable_warnings(InsecureRequestWarning)  # implied by the option


def _unreadable(error: Exception) -> str:
    """Return why credentials cannot be read, without quoting their content.

    If a file is not a kubeconfig, the client may raise any error, with its content in the text.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ConfigException):
        return " ".join(str(error).split())
    return f"it is not a kubeconfig ({type(error).__name__})"
