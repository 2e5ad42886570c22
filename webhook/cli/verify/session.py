"""A run in this process: it is announced, measured, and its pods are deleted however it ends."""

from __future__ import annotations

from typing import NamedTuple

from webhook.cli.output import say
from webhook.cli.verify.exit_codes import UNREADABLE
from webhook.cli.verify.run_errors import say_run_error
from webhook.cli.verify.run_signals import LeftAtOnceError, RunSignals
from webhook.diagnose.verify.run_report import RunReport
from webhook.diagnose.verify.runs.cleaning import remove_pods
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.diagnose.verify.runs.pods import run_selector
from webhook.diagnose.verify.runs.run import NodeRun
from webhook.diagnose.verify.runs.run_cluster import RunSite
from webhook.errors import ClusterError


class RunEnd(NamedTuple):
    """How a run ended."""

    report: RunReport
    #: The exit code, where it is not that of the verdict.
    code: int | None


class RunSession:
    """One run; `signals` must be in force."""

    def __init__(self, plan: RunPlan, namespace: str, site: RunSite, signals: RunSignals) -> None:
        self._plan = plan
        self._namespace = namespace
        self._site = site
        self._signals = signals
        self._run = NodeRun(plan, site)

    def complete(self) -> RunEnd:
        """Measure, and clean up, unless a second signal comes.

        Raises ClusterError at once, not after a minute, if the pods cannot even be listed.
        """
        self._site.pods.list(run_selector(self._plan.name))
        self._announce()
        try:
            well = self._measured()
        except LeftAtOnceError:
            say("error", f"left without cleaning up; {self._hint}")
            well = False
        return RunEnd(self._run.report, self._signals.exit_code or (None if well else UNREADABLE))

    def _announce(self) -> None:
        plan = self._plan
        pairs = f"{plan.pairs} pair{'s' * (plan.pairs > 1)}"
        self._site.tell(
            None,
            f"{plan.name} in namespace {self._namespace}: fabric {plan.fabric.name}, "
            f"{len(plan.nodes)} nodes, {pairs}, image {plan.image}",
        )

    def _measured(self) -> bool:
        """Measure, and clean up; return whether both came to their end."""
        try:
            measured = self._to_its_end()
        except Exception:
            self._cleaned()
            raise
        return self._cleaned() and measured

    def _to_its_end(self) -> bool:
        """Return whether the run came to its end; say why not."""
        try:
            self._run.measure()
        except ClusterError as error:
            say_run_error(error)
        else:
            return True
        return False

    def _cleaned(self) -> bool:
        """Delete what is left of the pods; return whether that could be done, and say why not."""
        selector = run_selector(self._plan.name)
        try:
            remove_pods(self._site.pods, selector, self._signals.rest, self._site.now)
        except ClusterError as error:
            say("error", f"{error}; {self._hint}")
            return False
        return True

    @property
    def _hint(self) -> str:
        command = f"rdma-webhook verify clean -n {self._namespace} --run {self._plan.name}"
        return f"pods may be left: {command}"
