"""Read a status as text: whether we could have written it, and under which configuration.

A user may write a status too, and a configuration's hash is not secret. So nothing in a status
allows what the user could not ask for otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from webhook.decide.scope import NO_CALL, EarlierCall
from webhook.model.annotations import LONGEST_STATUS, STATUS

#: The fields that count or list what was done.
COUNTED = ("applied", "skipped", "warned")
#: All fields, in their order.
ORDER = ("rdma", "because", "fabric", "reason", *COUNTED, "config")
_HASH = re.compile(r"[0-9a-f]{12}")


def written_by_us(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Read a JSON object with our fields in our order and format; return {} for anything else."""
    written = annotations.get(STATUS)
    if not isinstance(written, str) or len(written) > LONGEST_STATUS:
        return {}
    try:
        body = orjson.loads(written)
    except orjson.JSONDecodeError:
        return {}
    ours = isinstance(body, dict) and list(body) == [key for key in ORDER if key in body]
    return body if ours and orjson.dumps(body).decode() == written else {}


def earlier_call(annotations: Mapping[str, Any]) -> EarlierCall:
    """Return the configuration and the fabric of the call that wrote the pod's status.

    The codes in it are not checked: another version of this program may know others.
    """
    body = written_by_us(annotations) if STATUS in annotations else {}
    config, fabric = body.get("config"), body.get("fabric")
    if not isinstance(config, str) or not _HASH.fullmatch(config):
        return NO_CALL
    return EarlierCall(config, fabric if isinstance(fabric, str) else None)


def configuration_named_in(pod: Any) -> str:
    """Return the hash in the status of anything that claims to be a pod; "" if there is none."""
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return earlier_call(annotations).config if isinstance(annotations, dict) else ""
