"""A run: round after round, and in each round all pairs side by side.

All of it happens in one thread, and no request is interrupted, so that no pod is created of which
nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from webhook.diagnose.verify.peers import compare
from webhook.diagnose.verify.results import Remark
from webhook.diagnose.verify.run_report import PairResult, RunReport
from webhook.diagnose.verify.runs.errors import RunStopError, interrupted
from webhook.diagnose.verify.runs.pair_run import PairRun
from webhook.diagnose.verify.runs.pairings import Round
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.diagnose.verify.runs.pod_watch import PodWatch
from webhook.diagnose.verify.runs.pods import run_selector
from webhook.diagnose.verify.runs.run_cluster import RunSite

#: Seconds between two looks at the pods.
_PAUSE = 1.0


class NodeRun:
    """One run; what is left of its pods is for `remove_pods`."""

    def __init__(self, plan: RunPlan, site: RunSite) -> None:
        self._plan = plan
        self._site = site
        self._watch = PodWatch(site, run_selector(plan.name))
        self._results: dict[int, PairResult] = {}
        self._remarks: list[Remark] = []

    def measure(self) -> None:
        """Measure all pairs, until the run is to end; `report` has what was measured.

        Raises ClusterError if the API server stays silent, or pods may not be created.
        """
        places = count()
        try:
            for pairs in self._plan.rounds:
                self._round(pairs, places)
        except RunStopError as stop:
            self._remarks.append(stop.remark)

    @property
    def report(self) -> RunReport:
        """What was measured so far; each number is compared with those of its peers."""
        plan, results = self._plan, [self._results[place] for place in sorted(self._results)]
        compared = iter(compare([one for result in results for one in result.judgements]))
        return RunReport(
            plan.name,
            plan.fabric.name,
            plan.image,
            plan.nodes,
            tuple(
                PairResult(one.pair, tuple(next(compared) for _ in one.judgements))
                for one in results
            ),
            tuple(self._remarks),
        )

    def _round(self, pairs: Round, places: Iterator[int]) -> None:
        active = {}
        for pair in pairs:
            place = next(places)
            active[place] = PairRun(self._plan, self._site, self._watch, place, pair).steps()
        while active:
            self._watch.look()
            for place, steps in list(active.items()):
                try:
                    next(steps)
                except StopIteration as done:
                    self._results[place] = done.value
                    del active[place]
            if active and self._site.pause(_PAUSE):
                raise interrupted(len(self._results), self._plan.pairs)
