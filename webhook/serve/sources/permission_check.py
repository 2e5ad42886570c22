"""A check for excessive permissions of the webhook's own account.

The policy rdma-webhook-guard allows it to change only `caBundle` of two webhook configurations. A
policy that is not installed, or does not match the account, would go unnoticed. So each replica
tries other changes in dry runs: at its start and once an hour.

The policies recognize the account by its name. A server whose account was renamed does not start.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from certs.installation import WebhookConfiguration
from webhook.errors import ClusterError, ConfigError
from webhook.kube.access import IN_CLUSTER, connect
from webhook.kube.permission_probe import DryRunResult, RawApi, probe_permissions
from webhook.kube.remedies import APPLY_AGAIN
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions, webhook_configurations
from webhook.serve.state import State
from webhook.text.readiness import UNKNOWN, WARNING, ReadinessCheck

#: Seconds until the next attempt: if all is well, if the account may change something, and while
#: that is unknown.
RETRY_WHEN_FINE, RETRY_WHEN_ALLOWED, RETRY_WHEN_UNKNOWN = 3600.0, 600.0, 30.0
#: Seconds until the confirmation of a first finding: a new policy takes a few seconds to apply.
CONFIRM = 10.0
#: The variable with the name of the pod's ServiceAccount, and the only name that the guards match.
ACCOUNT_VARIABLE, GUARDED_ACCOUNT = "POD_SERVICE_ACCOUNT", "rdma-webhook"
#: Webhook configuration → whether the account may change it, as far as known.
_Permissions = dict[WebhookConfiguration, bool]


class PermissionCheck:
    """A source that tries in a thread, and reports in the log, a metric and `/readyz`."""

    def __init__(
        self,
        connect: Callable[[], RawApi],
        webhook_configurations: Sequence[WebhookConfiguration],
        state: State,
    ) -> None:
        """Prepare; the thread calls `connect`, which may be slow."""
        self._connect = connect
        self._webhook_configurations = webhook_configurations
        self._api: RawApi | None = None
        #: Whether the last attempt showed a fault; the next one must confirm it.
        self._has_fault = False
        #: The last answers, and the problem of the last attempt. Replaced together.
        self._latest: tuple[_Permissions, str] = ({}, "not tried yet")
        self._reported: _Permissions = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="guard", daemon=True)
        state.probes.append(self.check)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current attempt, without waiting for it."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            seconds = self.attempt()
            self._stop.wait(seconds * random.uniform(0.8, 1.0))  # noqa: S311 -- no secret

    def attempt(self) -> float:
        """Try to change each webhook configuration; return the seconds until the next attempt."""
        tried = {
            webhook_configuration: self._try(webhook_configuration)
            for webhook_configuration in self._webhook_configurations
        }
        answers = {
            webhook_configuration: dry_run.allowed
            for webhook_configuration, dry_run in tried.items()
            if dry_run.allowed is not None
        }
        had_fault, self._has_fault = self._has_fault, any(answers.values())
        if self._has_fault and not had_fault:
            return CONFIRM
        problem = next((dry_run.problem for dry_run in tried.values() if dry_run.problem), "")
        self._latest = (self._latest[0] | answers, problem)
        if self._has_fault:
            return RETRY_WHEN_ALLOWED
        return RETRY_WHEN_UNKNOWN if problem else RETRY_WHEN_FINE

    def _try(self, webhook_configuration: WebhookConfiguration) -> DryRunResult:
        try:
            if self._api is None:
                self._api = self._connect()
            return probe_permissions(self._api, webhook_configuration.path)
        except ClusterError as error:
            return DryRunResult(None, str(error))

    def poll(self) -> bool:
        """Return whether anything changed since the last report."""
        return self._latest[0] != self._reported

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state: one line for each change."""
        before, now = self._reported, self._latest[0]
        self._reported = now
        for webhook_configuration, may_change in now.items():
            metrics.guarded.labels(webhook_configuration.kind).set(not may_change)
        if _changeable(now) and _changeable(now) != _changeable(before):
            log.write("warning", "not guarded", problem=_problem(now))
        elif not _changeable(now) and now.keys() == set(self._webhook_configurations):
            log.write(
                "info",
                "guarded",
                configurations=[str(webhook_configuration) for webhook_configuration in now],
            )

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`, always ready: a replica that may do too much still serves pods."""
        permissions, problem = self._latest
        if _changeable(permissions):
            return ReadinessCheck("guard", True, f"{WARNING}{_problem(permissions)}")
        if problem:
            return ReadinessCheck("guard", True, f"{UNKNOWN}{problem}")
        names = " and ".join(map(str, permissions))
        return ReadinessCheck("guard", True, f"this account may change at most caBundle of {names}")


def _changeable(permissions: _Permissions) -> list[str]:
    return [
        str(webhook_configuration)
        for webhook_configuration, may_change in permissions.items()
        if may_change
    ]


def _problem(permissions: _Permissions) -> str:
    names = " and ".join(_changeable(permissions))
    return (
        f"this account may change more than caBundle of {names}; {APPLY_AGAIN}, which contain the "
        "policy rdma-webhook-guard and its binding"
    )


def permission_check_of(
    options: ServeOptions, state: State, environment: Mapping[str, str]
) -> tuple[PermissionCheck, ...]:
    """Return the source, if there is a cluster."""
    if options.dev or (options.kubeconfig is None and IN_CLUSTER not in environment):
        return ()
    guarded = webhook_configurations(
        options.webhook_configuration, options.validating_webhook_configuration
    )
    return (PermissionCheck(partial(connect, options.kubeconfig), guarded, state),)


def require_guarded_account(environment: Mapping[str, str]) -> None:
    """Raise ConfigError if the pod's ServiceAccount has a name that no guard matches."""
    account = environment.get(ACCOUNT_VARIABLE, GUARDED_ACCOUNT)
    if account != GUARDED_ACCOUNT:
        raise ConfigError(
            f"the ServiceAccount of this pod is {account}, but the policies that guard it match "
            f"only the name {GUARDED_ACCOUNT}; remove namePrefix and nameSuffix from the "
            "kustomization (another namespace needs neither: docs/installation.md)"
        )
