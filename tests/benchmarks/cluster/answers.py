"""Webhooks to compare with, each a process: `python answers.py KIND HOST PORT CRT KEY [PATCH]`.

They are typical implementations on the same server: FastAPI, or the bare interface below it, which
parses nothing. Both give a constant answer; a pod that is already patched is allowed unchanged,
since the API server may call again.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import Body, FastAPI

_STATUS = "rdma.lab/status"
#: The API server writes the uid first.
_UID = re.compile(rb'"uid":"([^"]+)"')
_KEEP_ALIVE_SECONDS = 120  # above the API server's 90

_Message = MutableMapping[str, Any]
_Application = Callable[
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]],
    Awaitable[None],
]


def noop() -> FastAPI:
    """Allow every pod."""
    return _fastapi({})


def fastapi(patch: Path) -> FastAPI:
    """Answer with the patch, using FastAPI."""
    return _fastapi(_response(patch))


def _fastapi(constant: dict[str, Any]) -> FastAPI:
    app = FastAPI()

    @app.post("/mutate")
    async def mutate(review: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        request = review["request"]
        annotations = request["object"]["metadata"].get("annotations") or {}
        response = {"uid": request["uid"], "allowed": True}
        if _STATUS not in annotations:
            response |= constant
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }

    return app


def raw(patch: Path) -> _Application:
    """Answer with the patch, parsing nothing: this is the cost of server and TLS alone."""
    mark = f'"{_STATUS}":'.encode()
    head = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"'
    allowed = b'","allowed":true'
    patched = allowed + b"," + json.dumps(_response(patch))[1:-1].encode()

    async def mutate(_scope: _Message, receive: Any, send: Any) -> None:
        message = await receive()
        body: bytes = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        uid = _UID.search(body)
        assert uid is not None
        answer = b"".join((head, uid[1], allowed if mark in body else patched, b"}}"))
        length = str(len(answer)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return mutate


def _response(patch: Path) -> dict[str, Any]:
    encoded = base64.b64encode(patch.read_bytes()).decode()
    return {"patchType": "JSONPatch", "patch": encoded}


def main(kind: str, host: str, port: str, certificate: str, key: str, *patch: str) -> None:
    """Serve one of the webhooks until SIGTERM."""
    application = {"noop": noop, "fastapi": fastapi, "raw": raw}[kind](*map(Path, patch))  # type: ignore[operator]
    uvicorn.run(
        application,
        host=host,
        port=int(port),
        ssl_certfile=certificate,
        ssl_keyfile=key,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
