"""Tests of the figures that the structure of the code is measured by."""

from __future__ import annotations

from pathlib import Path

from tests.structure.figures import border_crossings, reads_by_path


def test_calls_of_readers_are_counted_outside_of_the_pods_reading(tmp_path: Path) -> None:
    """Imported and own readers count by their room; other functions of that name do not."""
    sources = {
        "decide/a.py": (
            "from webhook.model.pod import at, read_string\nat(read_string(1))\nread_mappings(2)\n"
        ),
        "why/b.py": "def word_at(node):\n    return node\nword_at(1)\nx.word_at(2)\n",
        "model/pod/c.py": "from webhook.model.pod.reading import at\nat(1)\n",
        "text/d.py": "print(1)\n",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    assert reads_by_path(tmp_path) == {"decide": 2, "why": 1}


def test_borders_are_counted_between_rooms() -> None:
    """A decision reads the model; calls inside of a room do not count."""
    pairs = border_crossings(Path(__file__).parents[2] / "webhook")
    rooms = {(caller.partition("/")[0], called.partition("/")[0]) for caller, called in pairs}
    assert ("decide", "model") in rooms
    assert all(caller != called for caller, called in rooms)
