from __future__ import annotations

import io

import pytest

from webhook.preview.worker.frames import (
    HEAD_BYTES,
    FrameError,
    begun,
    lengths,
    read_frame,
    read_head,
)


def test_what_is_written_is_read() -> None:
    """Head and body, any characters, one frame after the other, then the end."""
    heads = [{"operation": "preview", "labels": {"a": "训练\n\udcff"}}, {}]
    line = io.BytesIO(b"".join(begun(head, 3) + b"a\0b" for head in heads))

    assert [read_frame(line.read, 3) for _ in range(3)] == [
        *((head, b"a\0b") for head in heads),
        None,
    ]


def test_the_end_within_a_frame_is_the_end() -> None:
    """Wherever the other side stops, nothing is made of the piece."""
    whole = begun({"status": 200}, 3) + b"abc"
    for size in range(len(whole)):
        assert read_frame(io.BytesIO(whole[:size]).read, 3) is None


def test_what_is_longer_than_it_may_be_is_not_read() -> None:
    """Neither head nor body: nothing is allocated for it."""
    assert lengths(HEAD_BYTES.to_bytes(4) + (5).to_bytes(4), 5) == (HEAD_BYTES, 5)
    for head, body in ((HEAD_BYTES + 1, 0), (2, 6), (1 << 31, 1 << 31)):
        with pytest.raises(FrameError):
            lengths(head.to_bytes(4) + body.to_bytes(4), 5)


@pytest.mark.parametrize("head", [b"", b"[]", b"7", b"null", b"{", b"\xff", b"[" * HEAD_BYTES])
def test_a_head_is_a_json_object(head: bytes) -> None:
    """All else is an error, of one kind."""
    with pytest.raises(FrameError):
        read_head(head)
