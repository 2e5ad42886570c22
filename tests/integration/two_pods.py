"""Two network namespaces with links between them, like the network that two pods share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from tests.integration.programs import lacking, require_program
from tests.waiting import until

#: The links, each with its own subnet: what CNI gives a pod, what Multus adds, a node's bond.
LINKS = ("eth0", "net1", "bond0")


class Running:
    """A process and its output."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[str]) -> None:
        self._process, self._output, self._printed = process, output, ""

    def ended(self) -> bool:
        """Return whether it has ended."""
        return self._process.poll() is not None

    def succeeded(self) -> bool:
        """Return whether it has ended with status 0."""
        return self._process.poll() == 0

    def failed(self) -> bool:
        """Return whether it has ended with another status."""
        return self._process.poll() not in (None, 0)

    def end(self) -> None:
        """End it if it still runs, and keep its output."""
        self._process.kill()
        self._process.wait()
        self._output.seek(0)
        self._printed = self._output.read()

    def printed(self) -> str:
        """Return its output until its end."""
        return self._printed


class TwoPods:
    """The namespaces `here` and `there`, where each link has the addresses .1 and .2."""

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.here, self.there = (f"rdma-{os.getpid()}-{end}" for end in "ab")

    def set_up(self) -> None:
        """Create the namespaces and connect them; raise CalledProcessError if that is forbidden."""
        for namespace in (self.here, self.there):
            self._run("netns", "add", namespace)
            self._run("-n", namespace, "link", "set", "lo", "up")
        for link in LINKS:
            peer = ("type", "veth", "peer", "name", link, "netns", self.there)
            self._run("link", "add", link, "netns", self.here, *peer)
            for namespace in (self.here, self.there):
                address = f"{self.address(namespace, link)}/24"
                self._run("-n", namespace, "address", "add", address, "dev", link)
                self._run("-n", namespace, "link", "set", link, "up")
        until(self._is_up)  # the kernel reports it a moment later

    def remove(self) -> None:
        """Remove the namespaces, and with them the links."""
        for namespace in (self.here, self.there):
            subprocess.run([self.ip, "netns", "del", namespace], capture_output=True, check=False)

    def address(self, namespace: str, link: str) -> str:
        """Return the address of a namespace's end of a link."""
        return f"10.250.{LINKS.index(link)}.{1 if namespace == self.here else 2}"

    def inside(self, namespace: str, *command: str) -> list[str]:
        """Return the words that run a command in a namespace."""
        return [self.ip, "netns", "exec", namespace, *command]

    @contextmanager
    def running(self, namespace: str, *command: str, env: Mapping[str, str]) -> Iterator[Running]:
        """Run a command in a namespace with this environment, and end it at the end."""
        with TemporaryFile("w+") as output:
            process = subprocess.Popen(
                self.inside(namespace, *command),
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            running = Running(process, output)
            try:
                yield running
            finally:
                running.end()

    def listens(self, namespace: str, port: int) -> bool:
        """Return whether a process in the namespace listens on a TCP port."""
        table = self._read(namespace, "/proc/net/tcp") + self._read(namespace, "/proc/net/tcp6")
        rows = (line.split() for line in table.splitlines())
        return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows if row[3:])

    def sent(self, link: str) -> int:
        """Return how many bytes `here` has sent over a link."""
        return int(self._read(self.here, f"/sys/class/net/{link}/statistics/tx_bytes"))

    def _is_up(self) -> bool:
        """Return whether both ends of all links carry data."""
        return all(
            self._read(namespace, f"/sys/class/net/{link}/operstate").strip() == "up"
            for namespace in (self.here, self.there)
            for link in LINKS
        )

    def _read(self, namespace: str, file: str) -> str:
        # `ip netns exec` mounts a /sys of the namespace; /proc/net follows the process.
        done = subprocess.run(
            self.inside(namespace, "cat", file), capture_output=True, text=True, check=False
        )
        return done.stdout

    def _run(self, *words: str) -> None:
        subprocess.run([self.ip, *words], capture_output=True, check=True)


@contextmanager
def two_pods() -> Iterator[TwoPods]:
    """Provide the namespaces; if they cannot be made, fail with CI=true, else skip the test."""
    if os.geteuid() != 0:
        lacking("network namespaces need root: run the test with sudo -E")
    pods = TwoPods(require_program("ip", "iproute2"))
    try:
        pods.set_up()
    except subprocess.CalledProcessError as error:
        pods.remove()
        lacking(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        yield pods
    finally:
        pods.remove()


def script(folder: Path, name: str, text: str) -> Path:
    """Write a program into a folder."""
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
    return file
