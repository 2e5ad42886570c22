from __future__ import annotations

import json
import logging
import os

import pytest

from tests.unit.serve.client import Lines
from webhook.errors import crash_summary
from webhook.serve.log import Forward, Log

SECRET = "hunter2"


def test_line_is_a_json_object_without_none() -> None:
    """The order is time, level, message, fields; other scripts are not escaped."""
    lines = Lines()
    lines.log.write("info", "decided", name="训练\n", fabric=None, applied=["env"])
    (line,) = lines.read()

    assert list(line) == ["ts", "level", "msg", "name", "applied"]
    assert (line["level"], line["msg"], line["name"]) == ("info", "decided", "训练\n")


def test_level_below_the_least_is_left_out() -> None:
    """`--log-level warning` leaves out decisions."""
    lines = Lines("warning")
    lines.log.write("info", "decided")
    lines.log.write("error", "broken")

    assert [line["msg"] for line in lines.read()] == ["broken"]


def test_a_buffered_log_keeps_warnings() -> None:
    """A person at a terminal reads the announcement first; warnings and errors follow it."""
    lines = Lines(buffered=True)
    lines.log.write("info", "configuration loaded")
    lines.log.write("warning", "odd")
    assert lines.read() == []
    lines.log.release()
    lines.log.write("info", "decided")

    assert [line["msg"] for line in lines.read()] == ["odd", "decided"]


def test_a_log_without_a_reader_stops_nothing() -> None:
    """A closed pipe must not fail a request."""
    read, write = os.pipe()
    os.close(read)
    Log("info", write).write("info", "decided")
    os.close(write)


def test_a_reader_that_pauses_stops_nothing() -> None:
    """A full pipe takes no line, and no request waits for it; later a line counts the losses."""
    read, write = os.pipe()
    log = Log("info", write)
    for number in range(2000):
        log.write("info", "decided", number=number, name="x" * 100)
    written = os.read(read, 1 << 20).splitlines()
    log.write("info", "read again")
    notice, last = map(json.loads, os.read(read, 1 << 20).splitlines())

    assert [json.loads(line)["number"] for line in written] == [*range(len(written))]
    assert (notice["msg"], notice["level"], notice["lines"]) == (
        *("log lines dropped", "warning"),
        2000 - len(written),
    )
    assert last["msg"] == "read again"
    for descriptor in (read, write):
        os.close(descriptor)


def _fail(secret: str) -> None:
    raise ValueError(secret)


def test_exception_is_logged_without_its_message() -> None:
    """An exception's message may quote a pod; its type and trace do not."""
    with pytest.raises(ValueError, match=SECRET) as caught:
        _fail(SECRET)
    summary = crash_summary(caught.value)

    assert summary["error"] == "ValueError"
    assert summary["trace"][-1].endswith("_fail")
    assert SECRET not in json.dumps(summary)


def test_libraries_log_through_it() -> None:
    """Lines from uvicorn have the same form, and its exceptions lose their messages."""
    lines = Lines()
    logger = logging.getLogger("test.of.the.log")
    logger.propagate = False
    logger.addHandler(Forward(lines.log))
    try:
        _fail(SECRET)
    except ValueError:
        logger.exception("Exception in %s\n", "ASGI application")
    logger.critical("over")
    first, second = lines.read()

    assert (first["level"], first["msg"], first["logger"], first["error"]) == (
        "error",
        "Exception in ASGI application",
        "test.of.the.log",
        "ValueError",
    )
    assert SECRET not in json.dumps(first)
    assert (second["level"], second["msg"]) == ("error", "over")
