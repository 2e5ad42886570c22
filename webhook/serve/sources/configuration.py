"""Choose the source of the configuration, a file or the object in the cluster; read the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path as File
from typing import Protocol

from certs.clock import delays
from webhook.config.files import decode, read_file
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS, Loaded, parse_fabrics
from webhook.kube.access import IN_CLUSTER
from webhook.kube.informers import Informers, connect_reads
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.sources.source import Source
from webhook.serve.state import PreparedConfiguration, ReadinessCheck, State
from webhook.text.escape import visible


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
    feed = Informers(partial(connect_reads, options.kubeconfig), delays, kinds=(CONFIGURATIONS,))
    metrics.watches.add(feed)
    return ObjectConfiguration(feed, state, in_use)


# Keep the state in step with the configuration file, outside a cluster.


class FileConfiguration:
    """Uses the fabrics file when it changes; a broken file changes nothing."""

    def __init__(self, watch: ConfigWatch, state: State, in_use: ConfigurationInUse) -> None:
        self._watch = watch
        self._in_use = in_use
        self._applied = 0
        self._prepared: PreparedConfiguration | None = None
        self._not_usable = f"{watch.path} is not usable, for the reason in the webhook's log"
        self._no_fabrics = f"{watch.path} has none: add them below spec.fabrics"
        state.probes.append(self.check)

    def start(self) -> None:
        """Do nothing: `poll` reads the file."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Read the file, and return whether anything changed; blocks, so not in the event loop."""
        changed, now = self._watch.poll(), self._watch
        if changed and now.loaded is not None and now.generation != self._applied:
            self._prepared = self._in_use.prepare(now.loaded)
        return changed

    def apply(self, _metrics: Metrics, _log: Log) -> None:
        """Use what `poll` found, in the event loop."""
        now = self._watch
        if now.loaded is not None and now.generation != self._applied:
            self._applied = now.generation
            self._in_use.use(now.loaded, self._prepared, without_fabrics=self._no_fabrics)
        if now.error:
            self._in_use.refuse(now.error, without=self._not_usable)
        else:
            self._in_use.repaired()

    @property
    def missing(self) -> str:
        """Why there are no fabrics to decide by, as one line; "" if there are."""
        if self._watch.loaded is None:
            return self._watch.error.partition("\n")[0] or "not read yet"
        return self._in_use.missing

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready once there has been one valid configuration."""
        ready = self._in_use.loaded is not None
        return ReadinessCheck("configuration", ready, self._in_use.detail if ready else self._why())

    def _why(self) -> str:
        return "; ".join(self._watch.error.splitlines()) or "not read yet"


# Reload a fabrics file when it changes; while it is missing or wrong, keep the last good one.
#
# The file is polled and its bytes are compared, because that works everywhere: with the kubelet's
# swap of the `..data` symlink, with editors that rename a new file over the old one, and on file
# systems without notifications.


class ConfigWatch:
    """A fabrics file, read again on every call of `poll()`.

    `poll()` blocks, so a server calls it from a thread.
    """

    def __init__(self, path: File, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        #: The last good configuration; None if there was none yet.
        self.loaded: Loaded | None = None
        #: Grows by one with every good configuration.
        self.generation = 0
        #: When `loaded` was read, in seconds since the epoch.
        self.loaded_at: float | None = None
        #: Why the current file is not in use, each reason on a line; "" if it is in use.
        self.error = ""
        self._clock = clock
        self._good: bytes | None = None
        self._tried: bytes | None = None

    def poll(self) -> bool:
        """Read the file; return whether the configuration or the error is a new one.

        Never raise.
        """
        before = self.generation, self.error
        try:
            content = read_file(self.path, LIMITS)
        except InvalidConfiguration as error:
            self._tried, self.error = None, str(error)
        else:
            if content != self._tried:
                self._tried = content
                self.error = "" if content == self._good else self._take(content)
        return (self.generation, self.error) != before

    def _take(self, content: bytes) -> str:
        """Use new content, or return the reason why not."""
        name = str(self.path)
        try:
            loaded, now = parse_fabrics(decode(content, name), name), self._clock()
        except InvalidConfiguration as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - not even a defect here may end the watch
            return visible(f"{name}: {error!r}")
        self.loaded, self.loaded_at, self._good = loaded, now, content
        self.generation += 1
        return ""
