"""Judge what the launcher of nccl-tests printed."""

from __future__ import annotations

from webhook.diagnose.verify.evaluate import assess, judged_files
from webhook.diagnose.verify.results import Judgement

_NOTE = "rdma-verify: this image has no "
_PARTS = {
    "mpirun": "Open MPI",
    "ssh": "an ssh client",
    "sshd": "sshd",
}


def judge_launcher(name: str, log: str) -> tuple[Judgement, ...]:
    """Judge the log of a launcher; there is at least one judgement. `name` stands for its file."""
    found = assess(judged_files(name, log), None).judgements
    if missing := missing_program(log):
        return (lacks(missing)._replace(file=name),)
    return found or (_nothing(log)._replace(file=name),)


def missing_program(log: str) -> str:
    """Return the program that an image lacks, by what our scripts say; "" if it has all."""
    for line in log.splitlines():
        if line.startswith(_NOTE):
            return line.removeprefix(_NOTE).strip()
    return ""


def lacks(program: str) -> Judgement:
    """Return the judgement on an image without a program."""
    part = _PARTS.get(program, "nccl-tests")
    return Judgement(
        (1, 1),
        "inconclusive",
        "NoNcclTests",
        f"The image has no {program}.",
        f"Name an image that has {part}: it needs nccl-tests, Open MPI, and sshd. --test names the "
        "program if it is not on the PATH.",
    )


def _nothing(log: str) -> Judgement:
    last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
    said = f" Its last line: {last.strip():.200}" if last else ""
    return Judgement(
        (1, max(1, log.count("\n"))),
        "inconclusive",
        "NoResult",
        f"The launcher printed nothing that is known.{said}",
        "Read its whole output: --logs DIR keeps it.",
    )
