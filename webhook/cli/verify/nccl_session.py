"""A run of nccl-tests in this process: it is announced, measured, and its job is deleted."""

from __future__ import annotations

from webhook.cli.output import say
from webhook.cli.verify.run_errors import say_run_error
from webhook.cli.verify.run_signals import LeftAtOnceError, RunSignals
from webhook.diagnose.verify.results import Assessment
from webhook.diagnose.verify.runs.nccl_plan import NcclPlan
from webhook.diagnose.verify.runs.nccl_run import NcclRun, NcclSite
from webhook.diagnose.verify.runs.pods import run_selector
from webhook.errors import ClusterError


class NcclSession:
    """One run; `signals` must be in force."""

    def __init__(
        self, plan: NcclPlan, namespace: str, place: NcclSite, signals: RunSignals
    ) -> None:
        self._plan = plan
        self._namespace = namespace
        self._place = place
        self._signals = signals
        self._run = NcclRun(plan, place)

    def complete(self) -> tuple[Assessment | None, bool]:
        """Return what was measured, None if nothing, and whether all was deleted.

        Raises ClusterError at once, not after a minute, if the pods cannot even be listed.
        """
        plan = self._plan
        self._place.site.pods.list(run_selector(plan.name))
        self._place.tell(
            f"{plan.name} in namespace {self._namespace}: fabric {plan.fabric.name}, "
            f"{plan.test} on {len(plan.nodes)} nodes with {plan.gpus} {plan.gpu_resource} each, "
            f"image {plan.image}"
        )
        try:
            try:
                assessment = self._measured()
            except Exception:
                self._cleaned()
                raise
            return assessment, self._cleaned()
        except LeftAtOnceError:
            say("error", f"left without cleaning up; {self._hint}")
            return None, False

    def _measured(self) -> Assessment | None:
        try:
            return self._run.measure()
        except ClusterError as error:
            say_run_error(error)
        return None

    def _cleaned(self) -> bool:
        try:
            self._run.remove(self._signals.rest)
        except ClusterError as error:
            say("error", f"{error}; {self._hint}")
            return False
        return True

    @property
    def _hint(self) -> str:
        command = f"rdma-webhook verify clean -n {self._namespace} --run {self._plan.name}"
        return f"an MPIJob and pods may be left: {command}"
