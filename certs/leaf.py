"""The leaf that a replica serves: its names."""

from __future__ import annotations

from datetime import datetime, timedelta

from certs.issue import KeyPair, issue_leaf


def service_name(service: str, namespace: str) -> str:
    """Return the name of a Service that the API server asks for, and no other."""
    return f"{service}.{namespace}.svc"


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names of a Service; but for the first one they are for people and probes."""
    name = service_name(service, namespace)
    return (name, f"{name}.cluster.local", f"{service}.{namespace}", service)


def issue_service_leaf(
    ca: KeyPair, service: str, namespace: str, lifetime: timedelta, now: datetime
) -> KeyPair:
    """Issue a leaf for a Service; it never outlives its CA."""
    return issue_leaf(ca, service_names(service, namespace), lifetime=lifetime, now=now)
