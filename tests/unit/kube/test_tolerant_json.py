"""What the API server accepts of its clients can be read, and written again."""

from __future__ import annotations

import json
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from tests.case_names import case_name
from tests.growth import MAX_CPU_RATIO, cpu_ratio
from webhook.kube.client import parsed
from webhook.kube.reads import HttpReads
from webhook.kube.tolerant_json import MAX_DEPTH, read_json

#: The depths that orjson writes and reads, and the API server's own limit.
WRITTEN, READ, ACCEPTED = 254, 1024, 9_990


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> str:
    """Return JSON with so many levels."""
    return opening * levels + "1" + closing * levels


def depth_of(document: Any) -> int:
    """Return the levels of a document with one branch."""
    depth = 0
    while document.__class__ in {dict, list}:
        depth += 1
        document = next(iter(document.values() if document.__class__ is dict else document), None)
    return depth


@pytest.mark.parametrize(
    "brackets", [('{"a":', "}"), ("[", "]"), ('[{"a":', "}]"), ('{"a":', ',"b":1}')]
)
@pytest.mark.parametrize("levels", [WRITTEN // 2, WRITTEN + 1, READ + 1, ACCEPTED // 2])
def test_a_deep_object_is_read_up_to_a_level(levels: int, brackets: tuple[str, str]) -> None:
    """Everything around it stays; the deepest level that remains is empty."""
    deep = nested(levels, *brackets)
    body = f'{{"before":[{{}},"x"],"deep":{deep},"after":{{"b":[1,{{"c":"d"}}]}}}}'
    read = read_json(body.encode())
    assert (read["before"], read["after"]) == ([{}, "x"], {"b": [1, {"c": "d"}]})
    written = json.loads(json.dumps(read))
    assert written == read
    assert orjson.loads(orjson.dumps(read)) == read
    total = levels * len(brackets[0].strip('"a:')) + 1
    assert depth_of({"deep": read["deep"]}) == (total if total <= WRITTEN else MAX_DEPTH)


@pytest.mark.parametrize("levels", [1, MAX_DEPTH, WRITTEN])
def test_what_can_be_written_is_kept(levels: int) -> None:
    """Nothing is left out of it."""
    body = nested(levels)
    assert read_json(body.encode()) == json.loads(body)


def test_brackets_in_texts_do_not_count() -> None:
    """A text keeps its brackets, and its escaped quotes and backslashes."""
    texts = ["}" * 300, "[" * 500, '\\"{', "\\", 'é"]', ""]
    body = f'{{"texts":{json.dumps(texts)},"deep":{nested(READ + 1)},"{{":"\\\\"}}'
    read = read_json(body.encode())
    assert (read["texts"], read["{"]) == (texts, "\\")


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (rb'"\ud800"', "\ud800"),
        (rb'"\udc00x"', "\udc00x"),
        (b'"\xff"', "\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b"1e999", float("inf")),
        (b"9" * 5000, float("inf")),
        (b'["\xff",999999999999999999,9999999999999999999]', ["\ufffd", 10**18 - 1, 1e19]),
    ],
    ids=case_name,
)
def test_what_orjson_refuses_is_read(odd: bytes, expected: object) -> None:
    """The API server keeps the parameters for a driver as they were written."""
    read = read_json(b'{"parameters":%s,"name":"a"}' % odd)
    assert read == {"parameters": expected, "name": "a"}
    json.dumps(read)


def test_two_deep_objects() -> None:
    """Each is cut at the same level."""
    body = f'{{"a":{nested(READ)},"b":{{}},"c":{nested(READ, "[", "]")}}}'
    read = read_json(body.encode())
    assert [depth_of(read[key]) for key in "abc"] == [MAX_DEPTH - 1, 1, MAX_DEPTH - 1]


@pytest.mark.parametrize(
    "body",
    ["", "{", "}", nested(READ + 1)[:-1], nested(READ + 1) + "}", '{"a', "nan", "]" * 300, "\xff"],
)
def test_what_is_no_json_is_refused(body: str) -> None:
    """Also if it is deep."""
    with pytest.raises(ValueError, match="line 1"):
        read_json(body.encode())
    assert parsed(body.encode()) == {}


def test_a_client_reads_a_deep_object() -> None:
    """Somebody with the token writes its `managedFields`; the replicas must go on."""
    body = f'{{"metadata":{{"managedFields":[{nested(READ * 2)}]}},"spec":{{"holder":"a"}}}}'
    read = parsed(body.encode())
    assert read["spec"] == {"holder": "a"}
    assert depth_of(read["metadata"]) == MAX_DEPTH - 1


def test_lists_and_watches_go_on_after_a_deep_object() -> None:
    """A user of one namespace may create it, and the webhook reads those of all namespaces."""
    deep = f'{{"metadata":{{"name":"deep"}},"spec":{nested(READ + 1)}}}'
    lines = f'{{"object":{deep}}}\n{{"object":{{}}}}\n'.encode()
    body = f'{{"items":[{deep},{{"metadata":{{"name":"next"}}}}]}}'.encode()
    response = SimpleNamespace(
        read=lambda _: body, stream=lambda **_: [lines[:50], lines[50:]], close=lambda: None
    )
    answer = SimpleNamespace(status=200, response=response)
    client: Any = SimpleNamespace(open=lambda *_, **__: answer)
    reads = HttpReads(client)
    page: Any = reads.get("/x", {})
    assert [item["metadata"]["name"] for item in page["items"]] == ["deep", "next"]
    events: Any = list(reads.stream("/x", {}, 1.0))
    assert (events[0]["object"]["metadata"], events[1]) == ({"name": "deep"}, {"object": {}})


@pytest.mark.parametrize("end", [b" ", b'"', b"\\", b"{}", b"["], ids=case_name)
def test_the_work_grows_linearly(end: bytes) -> None:
    """Users decide how large such an object is; an end without a bracket is no exception."""

    def read(count: int) -> None:
        with suppress(ValueError):
            read_json(b'{"odd":"\xff"}' + end * count)

    assert cpu_ratio(lambda: read(20_000), lambda: read(80_000)) < MAX_CPU_RATIO
