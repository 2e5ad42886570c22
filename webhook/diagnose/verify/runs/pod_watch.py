"""The pods of a run as they were at the last look, and requests that outlast a silent server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from webhook.diagnose.verify.runs.run_cluster import Pod, RunSite
from webhook.errors import ClusterError
from webhook.kube.api import RefusedError
from webhook.model.facts import key_of

#: Seconds for which an API server may be silent, and between two requests to it.
_SILENCE, _WATCH_PAUSE = 60.0, 1.0
#: Too many requests, and no answer from behind the API server; not 500, by which it passes on that
#: a webhook failed.
_BUSY = (429, 502, 503, 504)
_T = TypeVar("_T")


class PodWatch:
    """Looks at the pods of one run."""

    def __init__(self, site: RunSite, selector: str) -> None:
        self._site = site
        self._selector = selector
        #: By name.
        self.pods: Mapping[str, Pod] = {}

    def look(self) -> None:
        """List the pods."""
        listed = self.patiently(lambda: self._site.pods.list(self._selector))
        self.pods = {key_of(pod)[1]: pod for pod in listed}

    def patiently(self, request: Callable[[], _T]) -> _T:
        """Make a request, and repeat it while there is no answer.

        Raises RefusedError if the API server rejects it, and ClusterError if the API server stays
        silent, or the run is to end.
        """
        deadline = self._site.now() + _SILENCE
        while True:
            try:
                return request()
            except ClusterError as error:
                silent = not isinstance(error, RefusedError) or error.code in _BUSY
                if not silent or self._site.now() > deadline or self._site.pause(_WATCH_PAUSE):
                    raise
