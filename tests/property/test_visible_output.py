"""Laws for everything that is printed about users' documents and files: it is visible."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.text.test_escape import HIDDEN
from webhook.cli import main
from webhook.config import EXAMPLE
from webhook.preview.worker.operations import Operations
from webhook.serve.log import Log

#: Hidden characters that a sent text can contain; half surrogate pairs cannot be sent.
SENT = "".join(char for char in HIDDEN if not 0xD800 <= ord(char) <= 0xDFFF)
WORDS = st.text(st.sampled_from(f"{SENT}a1-/ ") | st.characters(codec="utf-8"), min_size=1)
FORMS = ("text", "json", "patch", "yaml", "diff")


def hidden(text: str) -> list[str]:
    """List the invisible characters of an output, except its line ends."""
    return [char for char in text if not char.isprintable() and char != "\n"]


def run(*arguments: str) -> tuple[str, str]:
    """Run a command; return its standard output and standard error."""
    output, error = TextIOWrapper(BytesIO(), encoding="utf-8"), StringIO()
    with patch("sys.stdout", output), patch("sys.stderr", error):
        main(list(arguments))
    output.flush()
    return output.buffer.getvalue().decode(), error.getvalue()


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Make a pod with users' words in every place, as JSON, which can contain them all."""

    def word() -> str:
        return draw(WORDS)

    container = {
        "name": word(),
        "image": word(),
        "command": ["mpirun", word()],
        "env": [{"name": word(), "value": word()}, {"name": "UCX_TLS", "value": word()}],
        "resources": {"limits": {draw(st.sampled_from(["nvidia.com/v100", word()])): word()}},
    }
    annotations = {"rdma.lab/enable": draw(st.sampled_from(["true", word()])), word(): word()}
    for key in draw(st.sets(st.sampled_from(["fabric", "skip", "containers", "memory-limit"]))):
        annotations[f"rdma.lab/{key}"] = word()
    metadata = {"name": word(), "namespace": word(), "annotations": annotations, "labels": {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    note = {"apiVersion": "v1", "kind": word(), "metadata": {"name": word()}}
    listed = [{**pod, "spec": {"containers": [container]}}, note]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": listed})


@given(documents(), st.sampled_from(FORMS))
@settings(max_examples=60)
def test_the_output_of_a_preview_is_visible(document: str, form: str) -> None:
    """Everything is, except the user's own document, which is printed unescaped."""
    with TemporaryDirectory() as folder:
        name = Path(folder, "\x1b]0;a\u202e.json")
        name.write_text(document, encoding="utf-8")
        output, error = run("preview", "-c", str(EXAMPLE), "-o", form, str(name))
    assert hidden(error) == []
    if form == "diff":
        assert hidden("".join(output.splitlines(keepends=True)[:2])) == []
    elif form != "yaml":
        assert hidden(output) == []


@given(documents())
@settings(max_examples=40)
def test_lines_above_documents_are_comments(document: str) -> None:
    """Over HTTP, denials and warnings precede the YAML as comments, one per line."""
    operations = Operations()
    operations.answer({"operation": "configure"}, EXAMPLE.read_bytes())
    head = {"format": "yaml", "namespace": "lab", "labels": {}, "enable": True, "max_pods": None}
    head["example"] = False
    answer = operations.answer({"operation": "preview", **head}, document.encode())
    if answer.head["status"] != 200:
        assert hidden(answer.head["sentence"]) == []
        return
    remarks = [line for line in answer.body.decode().split("\n") if line.startswith("# ")]
    assert hidden("".join(remarks)) == []
    assert list(yaml.safe_load_all("\n".join(remarks))) == []


@given(WORDS, WORDS, st.sampled_from(("text", "json")))
@settings(max_examples=60)
def test_findings_about_a_fabrics_file_are_visible(key: str, value: str, form: str) -> None:
    """Unknown keys, wrong values, names and the file's name are printed visibly."""
    fabric = {"name": value, key: value, "mode": value, "hcas": [value], "env": {key: value}}
    head = {"apiVersion": "rdma.lab/v1alpha1", "kind": "FabricConfiguration", key: 1}
    with TemporaryDirectory() as folder:
        name = Path(folder, "\x1b\u202e.yaml")
        name.write_text(json.dumps({**head, "spec": {"fabrics": [fabric]}}), encoding="utf-8")
        assert hidden("".join(run("check-config", "-o", form, str(name)))) == []
        assert hidden("".join(run("preview", "-c", str(name), str(EXAMPLE)))) == []


@given(WORDS)
@settings(max_examples=30)
def test_usage_errors_are_visible(word: str) -> None:
    """Errors repeat an unknown argument, or the name of a missing file, visibly."""
    with suppress(SystemExit), patch("sys.stderr", StringIO()) as error:
        main(["check-config", f"--x{word}"])
    assert hidden(error.getvalue()) == []
    missing = word.replace("\0", "").replace("/", "") or "x"
    assert hidden("".join(run("preview", f"/nowhere/{missing}"))) == []


@given(st.text(st.characters(codec=None)), st.lists(st.text(st.characters(codec=None))))
def test_log_lines_are_visible(word: str, words: list[str]) -> None:
    """A log line is one visible line, whatever a name contains, even half a surrogate pair."""
    read, write = os.pipe()
    Log(descriptor=write).write("info", word[:100], name=word[:100], names=words[:5])
    os.close(write)
    with os.fdopen(read, encoding="utf-8", newline="") as pipe:
        written = pipe.read()
    assert hidden(written) == []
    assert written.count("\n") == 1
    assert json.loads(written)["name"] == word[:100]
