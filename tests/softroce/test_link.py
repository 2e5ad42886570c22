"""`verify judge` on a transfer between two machines: soft-RoCE with a wire between them.

Two emulated machines have one network. Its speed is an emulation's, so no rate that a port
could have would be ok; the tests check only that it is graded as a link.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.softroce.kept import Transcript, keep, rdma_webhook
from tests.softroce.machine import boot, prepare, require, shared
from webhook.diagnose.discover.inputs import collect_script

#: Each machine, and its address.
ENDS = {"server": "192.168.77.1", "client": "192.168.77.2"}
#: In seconds; both machines together, on a busy machine.
_PATIENCE = 1800.0

EXPECTED = {
    "bandwidth": ("error", "FarBelowRate"),
    "both-ways": ("error", "FarBelowRate"),
    "latency": ("unsure", "NoPeers"),
}
#: Where the emulation is so slow that the message rate has no digit left that proves the unit.
_TOO_SLOW = ("unsure", "UnitUnproven")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run both machines; return the folder with a folder of each."""
    require()
    home = tmp_path_factory.mktemp("link")
    (home / "both").mkdir()
    socket = home / "wire"
    with ThreadPoolExecutor() as pool:
        server = pool.submit(_run, home, "server", f"server=on,addr.type=unix,addr.path={socket}")
        while not (socket.exists() or server.done()):
            time.sleep(0.1)
        client = pool.submit(_run, home, "client", f"server=off,addr.type=unix,addr.path={socket}")
        for end in (client, server):
            end.result()
    return home


def _run(home: Path, end: str, wire: str) -> None:
    share = home / end
    share.mkdir()
    prepare(share, "link")
    (share / "collect.sh").write_text(collect_script())
    (peer,) = (address for name, address in ENDS.items() if name != end)
    (share / "link.env").write_text(f"END={end}\nOWN={ENDS[end]}\nPEER={peer}\n")
    card = f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:{ENDS[end][-1]:0>2}"
    network = ("-nic", "none", "-netdev", f"stream,id=wire,{wire}", "-device", card)
    exchange = shared("both", home / "both", writable=True)
    try:
        boot(
            share,
            seconds=_PATIENCE,
            options=(*network, *exchange),
        )
    finally:
        keep(f"link-{end}", share)


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    """Keep the output of `verify judge` for them."""
    return Transcript("link")


def _judged(transcript: Transcript, texts: Sequence[str]) -> dict[str, Any]:
    text = "\n".join(texts)
    words = ("verify", "judge", "--rate", "10")
    transcript.add("# client, then server", text)
    transcript.run(*words, "-", text=text)
    form: dict[str, Any] = json.loads(rdma_webhook(*words, "-o", "json", "-", text=text).stdout)
    return form


@pytest.mark.parametrize(("run", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_a_link_is_judged(
    results: Path, transcript: Transcript, run: str, expected: tuple[str, str]
) -> None:
    """Between two addresses nothing is taken for a loopback, and the number is what decides."""
    texts = [(results / end / f"{run}.txt").read_text() for end in ("client", "server")]
    judged = _judged(transcript, texts)
    slow = any(re.search(r" 0\.00000[01]$", text, re.MULTILINE) for text in texts)
    assert (judged["level"], judged["code"]) in {expected, _TOO_SLOW if slow else expected}, texts


def test_both_machines_are_a_single_fabric(results: Path, transcript: Transcript) -> None:
    """What `discover script` collected on both is one fabric with two nodes."""
    folder = results / "collected"
    folder.mkdir()
    for end in ENDS:
        text = (results / end / "collected.txt").read_text()
        (folder / f"{end}.txt").write_text(text)
    transcript.run("discover", "--dir", folder)
    ran = rdma_webhook("discover", "--dir", folder, "-o", "json")
    form = json.loads(ran.stdout)
    assert sorted(node["name"] for node in form["nodes"]) == sorted(ENDS)
    (fabric,) = form["fabrics"]
    assert fabric["hcas"] == ["rxe0"]
    assert fabric["hostSocketInterface"] == "eth0"
