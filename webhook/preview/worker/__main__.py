"""The worker's program: get ready, drop privileges, and answer requests until the server ends.

Its standard input and output are the socket to the server; no other connection is open.
"""

from __future__ import annotations

import gc
import sys
from typing import BinaryIO

from webhook.config import EXAMPLE
from webhook.preview.formats import HTTP_FORMATS
from webhook.preview.worker.confinement import confine, limit_cpu_seconds
from webhook.preview.worker.frames import frame_start, read_frame
from webhook.preview.worker.operations import Operations, Reply
from webhook.text.yaml.documents import DOCUMENT_LIMITS

#: A pod that gets a patch, with names to be escaped; and a text that is not YAML.
_REHEARSAL_BODIES = (
    "kind: Pod\nmetadata: {name: a\u200db}\n"
    "spec: {containers: [{name: a\u200db, resources: {limits: {nvidia.com/v100: 1}}}]}\n".encode(),
    b"a: [",
)
_OBJECT = (
    b'{"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration",'
    b' "metadata": {"name": "default"}, "spec": {"fabrics": []}}'
)
#: An update that removes a fabric.
_CHANGE = b'{"manager": "a", "is_empty": true, "removed": {"a": 1}, "before": [], "after": []}'
#: The same object with several errors.
_INVALID_OBJECT = _OBJECT.replace(
    b"[]", b'[{"name": 1, "hcass": [], "rateGbps": "a", "mode": "b", "env": []}, {"name": "c"}]'
)


def rehearse() -> None:
    """Run every operation once, since libraries import some of their modules at first use.

    After `confine`, no file can be opened, so no module can be imported.
    """
    operations = Operations()
    for is_object, body in ((True, _OBJECT), (False, EXAMPLE.read_bytes())):
        operations.answer({"operation": "configure", "object": is_object}, body)
    for validated in (_OBJECT, _INVALID_OBJECT):
        body = b'{"object": %b, "change": %b}' % (validated, _CHANGE)
        operations.answer({"operation": "validate", "uid": "a", "object_reference": {}}, body)
    preview_head = {
        "operation": "preview",
        "namespace": "a",
        "labels": {},
        "enable": True,
        "max_pods": 1,
    }
    preview_head["example"] = True
    for output_format in HTTP_FORMATS:
        for body in _REHEARSAL_BODIES:
            operations.answer({**preview_head, "format": output_format.name}, body)


def work(requests: BinaryIO, answers: BinaryIO) -> None:
    """Report that the worker is ready, then answer requests until the input ends."""
    operations = Operations()
    _send(answers, Reply({"status": 200}))
    while (request := read_frame(requests.read, DOCUMENT_LIMITS.size)) is not None:
        limit_cpu_seconds()
        _send(answers, operations.answer(*request))


def _send(answers: BinaryIO, answer: Reply) -> None:
    answers.write(frame_start(answer.head, len(answer.body)))
    answers.write(answer.body)
    answers.flush()


if __name__ == "__main__":
    rehearse()
    gc.freeze()  # the modules are never freed: the collector need not walk them in every preview
    confine()
    work(sys.stdin.buffer, sys.stdout.buffer)
