"""Hosts that did not answer: their command failed, and no tool shows anything of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from webhook.model.finding import Code, Finding, Location
from webhook.model.names import natural_key

HOST_UNANSWERED = Code(
    "HostUnanswered",
    "A host could not be reached, or the command that collects its output failed there, so "
    "nothing is known about the host.",
    "Check that the host can be reached (ssh HOST true) and that the command succeeds there, and "
    "collect the host's output again. Until then, the host is in no fabric.",
)


def unanswered_hosts(failed: Mapping[str, str], answered: Iterable[str]) -> dict[str, str]:
    """Return the failed hosts without any observation; one of the two names may have a domain."""
    names = {name_without_domain(name) for name in answered}
    return {
        host: reason for host, reason in failed.items() if name_without_domain(host) not in names
    }


def name_without_domain(name: str) -> str:
    """Return a name without its domain; an address stays."""
    first = name.partition(".")[0].lower()
    return name if first.isdigit() else first


def unanswered_findings(hosts: Mapping[str, str]) -> Iterator[Finding]:
    """Yield an error for each reason, with all its hosts."""
    by_reason: dict[str, list[str]] = {}
    for host in sorted(hosts, key=natural_key):
        by_reason.setdefault(hosts[host].replace(host, "HOST"), []).append(host)
    for reason, names in by_reason.items():
        text = f"did not answer ({reason}): {', '.join(names)}"
        yield HOST_UNANSWERED.finding("error", text, location=Location(nodes=tuple(names)))
