"""Join pictures to an animated WebP file, with the browser as the only encoder."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from struct import pack, unpack_from
from typing import NamedTuple

from playwright.sync_api import Browser

#: Draws a PNG, and returns it as WebP in base64; quality 1 is lossless.
_TO_WEBP = """
async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 1).split(",")[1];
}
"""
#: Names of the chunks with the pixels of a picture.
_PIXELS = (b"ALPH", b"VP8 ", b"VP8L")
_RIFF_HEADER = 12  #: bytes before the first chunk
_CHUNK_HEADER = 8
_ANIMATED = 2  #: the flag in the header of an animation
_OPAQUE = 2  #: the flag of a frame that replaces what is below it


class Frame(NamedTuple):
    """A picture of an animation."""

    png: bytes
    milliseconds: int


def animation(browser: Browser, frames: Sequence[Frame]) -> bytes:
    """Return frames of the same size as WebP that repeats without end.

    The format is that of "WebP Container Specification", sections "Extended File Format" and
    "Animation". It has no time of its making: the same frames make the same bytes.
    """
    page = browser.new_page()
    try:
        pictures = [
            b64decode(page.evaluate(_TO_WEBP, b64encode(frame.png).decode())) for frame in frames
        ]
    finally:
        page.close()
    size = b"".join(_minus_one(number) for number in unpack_from(">II", frames[0].png, 16))
    chunks = [
        _chunk(b"VP8X", pack("<I", _ANIMATED) + size),
        _chunk(b"ANIM", bytes(4) + pack("<H", 0)),
        *(
            _chunk(b"ANMF", bytes(6) + size + _frame(frame.milliseconds, picture))
            for frame, picture in zip(frames, pictures, strict=True)
        ),
    ]
    return _chunk(b"RIFF", b"WEBP" + b"".join(chunks))


def _frame(milliseconds: int, picture: bytes) -> bytes:
    pixels = (_chunk(name, content) for name, content in _chunks(picture) if name in _PIXELS)
    return pack("<I", milliseconds)[:3] + bytes([_OPAQUE]) + b"".join(pixels)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the content of each chunk of a WebP file."""
    start = _RIFF_HEADER
    while start < len(picture):
        name, length = unpack_from("<4sI", picture, start)
        start += _CHUNK_HEADER
        yield name, picture[start : start + length]
        start += length + length % 2


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + pack("<I", len(content)) + content + bytes(len(content) % 2)


def _minus_one(number: int) -> bytes:
    """Write a width or a height in 24 bits, as the format counts it."""
    return pack("<I", number - 1)[:3]
