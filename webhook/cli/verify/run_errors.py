"""What an error of the API server says to whoever began a run."""

from __future__ import annotations

from http import HTTPStatus

from webhook.cli.output import say
from webhook.errors import ClusterError
from webhook.kube.api import RefusedError


def say_run_error(error: ClusterError) -> None:
    """Say it, and where the rights are listed if one is missing."""
    forbidden = isinstance(error, RefusedError) and error.code == HTTPStatus.FORBIDDEN
    where = " (docs/verify.md lists the rights that a run needs)" if forbidden else ""
    say("error", f"{error}{where}")
