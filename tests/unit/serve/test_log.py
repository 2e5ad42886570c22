from __future__ import annotations

import json
import logging
import os

import pytest

from tests.unit.serve.client import Lines
from webhook.errors import crash_summary
from webhook.serve.log import Forward, Log

SECRET = "hunter2"


def test_line_is_one_json_object_without_what_is_none() -> None:
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


def test_a_held_log_keeps_what_matters() -> None:
    """A person at a terminal reads the announcement first; warnings and errors follow it."""
    lines = Lines(buffered=True)
    lines.log.write("info", "configuration loaded")
    lines.log.write("warning", "odd")
    assert lines.read() == []
    lines.log.release()
    lines.log.write("info", "decided")

    assert [line["msg"] for line in lines.read()] == ["odd", "decided"]


def test_log_that_nobody_reads_stops_nothing() -> None:
    """A closed pipe must not fail a request."""
    read, write = os.pipe()
    os.close(read)
    Log("info", write).write("info", "decided")
    os.close(write)


def test_a_reader_that_stands_still_stops_nothing() -> None:
    """A full pipe takes no line, and no request waits for it; later a line counts those lost."""
    read, write = os.pipe()
    log = Log("info", write)
    for number in range(2000):
        log.write("info", "decided", number=number, name="x" * 100)
    taken = os.read(read, 1 << 20).splitlines()
    log.write("info", "read again")
    told, last = map(json.loads, os.read(read, 1 << 20).splitlines())

    assert [json.loads(line)["number"] for line in taken] == [*range(len(taken))]
    assert (told["msg"], told["level"], told["lines"]) == (
        *("log lines dropped", "warning"),
        2000 - len(taken),
    )
    assert last["msg"] == "read again"
    for one in (read, write):
        os.close(one)


def _fail(secret: str) -> None:
    raise ValueError(secret)


def test_exception_is_told_without_its_message() -> None:
    """An exception's message may quote a pod; its type and trace do not."""
    with pytest.raises(ValueError, match=SECRET) as caught:
        _fail(SECRET)
    told = crash_summary(caught.value)

    assert told["error"] == "ValueError"
    assert told["trace"][-1].endswith("_fail")
    assert SECRET not in json.dumps(told)


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
