"""Choose the source of the configuration: a file, or the object in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from certs.backoff import delays
from webhook.kube.access import IN_CLUSTER
from webhook.kube.api_reads import connect_reads
from webhook.kube.informers import Feed
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_file import FileConfiguration
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.sources.source_source import Source
from webhook.serve.sources.watch import ConfigWatch
from webhook.serve.state import State


class Configuration(Source, Protocol):
    """Keeps the state in step with the configuration."""

    @property
    def missing(self) -> str:
        """Why there are no fabrics to decide by, as one line; "" if there are."""


def configuration_source(
    options: ServeOptions,
    state: State,
    metrics: Metrics,
    in_use: ConfigurationInUse,
    environment: Mapping[str, str],
) -> Configuration:
    """Choose by the options, and add its check to `/readyz`.

    In a cluster it is the object, unless a file was given.
    """
    given = options.config is not None or options.dev
    reachable = options.kubeconfig is not None or IN_CLUSTER in environment
    if given or not reachable:
        return FileConfiguration(ConfigWatch(options.fabrics), state, in_use)
    feed = Feed(partial(connect_reads, options.kubeconfig), delays, kinds=(CONFIGURATIONS,))
    metrics.watches.add(feed)
    return ObjectConfiguration(feed, state, in_use)
