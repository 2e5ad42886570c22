from __future__ import annotations

import io

import pytest

from webhook.preview.worker.frames import (
    MAX_HEAD_BYTES,
    FrameError,
    frame_start,
    lengths,
    read_frame,
    read_head,
)


def test_what_is_written_is_read() -> None:
    """Frames with any characters are read one after the other, and then the end."""
    heads = [{"operation": "preview", "labels": {"a": "训练\n\udcff"}}, {}]
    line = io.BytesIO(b"".join(frame_start(head, 3) + b"a\0b" for head in heads))

    assert [read_frame(line.read, 3) for _ in range(3)] == [
        *((head, b"a\0b") for head in heads),
        None,
    ]


def test_the_end_within_a_frame_is_the_end() -> None:
    """If the other side stops within a frame, the frame is dropped."""
    frame = frame_start({"status": 200}, 3) + b"abc"
    for size in range(len(frame)):
        assert read_frame(io.BytesIO(frame[:size]).read, 3) is None


def test_a_frame_beyond_the_limits_is_not_read() -> None:
    """This holds for head and body; no memory is allocated for them."""
    assert lengths(MAX_HEAD_BYTES.to_bytes(4) + (5).to_bytes(4), 5) == (MAX_HEAD_BYTES, 5)
    for head, body in ((MAX_HEAD_BYTES + 1, 0), (2, 6), (1 << 31, 1 << 31)):
        with pytest.raises(FrameError):
            lengths(head.to_bytes(4) + body.to_bytes(4), 5)


@pytest.mark.parametrize("head", [b"", b"[]", b"7", b"null", b"{", b"\xff", b"[" * MAX_HEAD_BYTES])
def test_a_head_is_a_json_object(head: bytes) -> None:
    """Any other head is an error of one kind."""
    with pytest.raises(FrameError):
        read_head(head)
