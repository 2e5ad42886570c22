from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from webhook.config import EXAMPLE, INSTALLED_FABRICS
from webhook.errors import ConfigError
from webhook.serve.listener import bind
from webhook.serve.options import ServeOptions


@contextmanager
def _taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
def test_free_ports_are_bound(host: str) -> None:
    """Port 0 means any free port, and no host means all addresses."""
    options = ServeOptions(host=host, port=0, preview_port=0, health_port=0)
    bound = bind(options, ["mutate", "health"])

    assert set(bound) == {"mutate", "health"}
    for listener in bound.values():
        with listener, socket.create_connection(("127.0.0.1", listener.getsockname()[1])) as client:
            assert client.getpeername()[1] == listener.getsockname()[1]


def test_taken_port_names_its_flag() -> None:
    """One line names the remedy, and no port stays bound."""
    with _taken_port() as port:
        options = ServeOptions(dev=True, port=0, preview_port=0, health_port=port)
        with pytest.raises(ConfigError) as caught:
            bind(options, ["mutate", "preview", "health"])
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1 port {port} (Address already in use); "
        "choose another port with --health-port (0 for any free one)"
    )


@pytest.mark.parametrize(("page_only", "flag"), [(False, "--page-port"), (True, "--port")])
def test_the_page_is_bound_to_the_loopback_with_its_own_flag(flag: str, *, page_only: bool) -> None:
    """`preview --page` has no other port, so its flag is just --port."""
    (listener,) = bind(ServeOptions(dev=True, page_only=page_only, page_port=0), ["page"]).values()
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    with _taken_port() as port:
        options = ServeOptions(dev=True, page_only=page_only, page_port=port)
        with pytest.raises(ConfigError, match=f"choose another port with {flag} "):
            bind(options, ["page"])


def test_dev_listens_on_this_node_only() -> None:
    """`--dev` has no secret to protect the server."""
    (listener,) = bind(ServeOptions(dev=True, port=0), ["mutate"]).values()
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_dev_refuses_another_host() -> None:
    """Ignoring the host would go unnoticed, and listening there would be unprotected."""
    with pytest.raises(ConfigError) as caught:
        bind(ServeOptions(dev=True, host="0.0.0.0", port=0), ["mutate"])

    assert str(caught.value) == (
        "--host '0.0.0.0': --dev serves on 127.0.0.1 only; "
        "omit --host, or use --tls-cert and --tls-key instead of --dev"
    )


def test_fabrics_file() -> None:
    """The default is the site's file, with --dev an example; --config overrides it."""
    assert ServeOptions().fabrics == INSTALLED_FABRICS
    assert ServeOptions(dev=True).fabrics == EXAMPLE
    assert ServeOptions(dev=True, config=INSTALLED_FABRICS).fabrics == INSTALLED_FABRICS
