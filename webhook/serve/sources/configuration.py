"""The choice between the configuration file and the object in the cluster, and the file source."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path as File
from typing import Protocol

from certs.clock import delays
from webhook.config.files import decode, read_file
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS, LoadedConfiguration, parse_fabrics
from webhook.kube.access import IN_CLUSTER
from webhook.kube.informers import Informers, connect_reads
from webhook.kube.watched_resources import CONFIGURATIONS
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.sources.source import Source
from webhook.serve.state import PreparedConfiguration, State
from webhook.text.escape import visible
from webhook.text.readiness import ReadinessCheck


class ConfigurationSource(Source, Protocol):
    """A source of the configuration."""

    @property
    def reason_without_fabrics(self) -> str:
        """The reason why there are no fabrics to decide by, on one line; "" if there are."""


def configuration_source(
    options: ServeOptions,
    state: State,
    metrics: Metrics,
    in_use: ConfigurationInUse,
    environment: Mapping[str, str],
) -> ConfigurationSource:
    """Return the source for the options, and add its check to `/readyz`.

    In a cluster it is the object, unless a file was given.
    """
    given = options.config is not None or options.dev
    reachable = options.kubeconfig is not None or IN_CLUSTER in environment
    if given or not reachable:
        return FileConfiguration(PolledConfigFile(options.fabrics), state, in_use)
    informers = Informers(
        partial(connect_reads, options.kubeconfig), delays, kinds=(CONFIGURATIONS,)
    )
    metrics.watches.add(informers)
    return ObjectConfiguration(informers, state, in_use)


# Keep the state in step with the configuration file outside a cluster.


class FileConfiguration:
    """A source that uses the fabrics file after each change; a broken file changes nothing."""

    def __init__(self, file: PolledConfigFile, state: State, in_use: ConfigurationInUse) -> None:
        self._file = file
        self._in_use = in_use
        self._applied_load_count = 0
        self._prepared_configuration: PreparedConfiguration | None = None
        self._not_usable = f"{file.path} is not usable, for the reason in the webhook's log"
        self._no_fabrics = f"{file.path} has no fabrics; add them under spec.fabrics"
        state.probes.append(self.check)

    def start(self) -> None:
        """Do nothing: `poll` reads the file."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Read the file, and return whether anything changed; blocks the calling thread."""
        file = self._file
        changed = file.poll()
        if (
            changed
            and file.loaded_configuration is not None
            and file.load_count != self._applied_load_count
        ):
            self._prepared_configuration = self._in_use.prepare(file.loaded_configuration)
        return changed

    def apply(self, _metrics: Metrics, _log: Log) -> None:
        """Use the result of `poll`, in the event loop."""
        file = self._file
        if file.loaded_configuration is not None and file.load_count != self._applied_load_count:
            self._applied_load_count = file.load_count
            self._in_use.use(
                file.loaded_configuration,
                self._prepared_configuration,
                reason_without_fabrics=self._no_fabrics,
            )
        if file.error:
            self._in_use.refuse(file.error, reason_without_fabrics=self._not_usable)
        else:
            self._in_use.clear_error()

    @property
    def reason_without_fabrics(self) -> str:
        """The reason why there are no fabrics to decide by, on one line; "" if there are."""
        if self._file.loaded_configuration is None:
            return self._file.error.partition("\n")[0] or "not read yet"
        return self._in_use.reason_without_fabrics

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready after the first valid configuration."""
        ready = self._in_use.loaded_configuration is not None
        return ReadinessCheck(
            "configuration", ready, self._in_use.detail if ready else self._reason()
        )

    def _reason(self) -> str:
        return "; ".join(self._file.error.splitlines()) or "not read yet"


# Reload a changed fabrics file; while it is missing or invalid, keep the last good one.
#
# Polling the file and comparing its bytes works everywhere: with the kubelet's swap of the `..data`
# symlink, with editors that rename a new file over the old one, and on file systems without
# notifications.


class PolledConfigFile:
    """A fabrics file that each `poll()` reads again.

    `poll()` blocks, so a server calls it in a thread.
    """

    def __init__(self, path: File, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        #: The last good configuration; None before the first.
        self.loaded_configuration: LoadedConfiguration | None = None
        #: The number of good configurations so far.
        self.load_count = 0
        #: The time of reading `loaded_configuration`, in seconds since the epoch.
        self.loaded_at: float | None = None
        #: The reasons why the current file is not in use, one per line; "" if it is in use.
        self.error = ""
        self._clock = clock
        self._good_content: bytes | None = None
        self._tried_content: bytes | None = None

    def poll(self) -> bool:
        """Read the file; return whether the configuration or the error is new.

        Never raises.
        """
        before = self.load_count, self.error
        try:
            content = read_file(self.path, LIMITS)
        except InvalidConfiguration as error:
            self._tried_content, self.error = None, str(error)
        else:
            if content != self._tried_content:
                self._tried_content = content
                self.error = "" if content == self._good_content else self._take(content)
        return (self.load_count, self.error) != before

    def _take(self, content: bytes) -> str:
        """Use new content; return a problem, or ""."""
        name = str(self.path)
        try:
            loaded_configuration, loaded_at = (
                parse_fabrics(decode(content, name), name),
                self._clock(),
            )
        except InvalidConfiguration as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - not even a defect here may end the watch
            return visible(f"{name}: {error!r}")
        self.loaded_configuration, self.loaded_at, self._good_content = (
            loaded_configuration,
            loaded_at,
            content,
        )
        self.load_count += 1
        return ""
