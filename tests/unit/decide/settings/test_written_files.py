"""Which files a command writes, as its text shows."""

from __future__ import annotations

import pytest

from webhook.decide.settings.written_files import (
    changes_files,
    file_filled_from_elsewhere,
    writes_files,
    writes_only_nccl_file,
)


@pytest.mark.parametrize(
    ("text", "writes", "only_nccl"),
    [
        ("echo A=1 >> /etc/nccl.conf", True, True),
        ("echo A=1 >/root/.nccl.conf", True, True),
        ("echo A=1 >/etc/rccl.conf", True, True),
        ("echo A=1 >| '/etc/nccl.conf'", True, True),
        ('echo A=1 > "/etc/nccl.conf"; echo B=1 >> /etc/nccl.conf', True, True),
        ("echo A=1 | tee /etc/nccl.conf", True, True),
        ("echo A=1 | tee -a -i '/etc/nccl.conf' > /dev/null", True, True),
        ("echo A=1 >> /etc/profile", True, False),
        ("echo A=1 | tee /etc/profile", True, False),
        ("echo A=1 > /etc/nccl.conf; echo export A=1 > /etc/profile", True, False),
        ("echo A=1 > /etc/nccl.conf; sed -i s/0/1/ /etc/profile", True, False),
        ("sed -i s/0/1/ /etc/profile", True, False),
        ("cp a /etc/profile", True, False),
        ("dd if=a of=/etc/profile", True, False),
        ("install a /etc/profile", True, False),
        ("ln -s a /etc/profile", True, False),
        ("mv a /etc/profile", True, False),
        ("python -c \"open('/etc/nccl.conf', 'a')\"", True, False),
        ("node -e 'fs.writeFileSync(a)'", True, False),
        ("echo A=1", False, False),
        ("echo A=1 > /dev/null", False, False),
        ("echo A=1 > /proc/1/fd/1", False, False),
        ("echo A=1 2>/tmp/errors 2>> /tmp/errors >&2", False, False),
        ("a >(b)", False, False),
        ("guarantee a", False, False),
    ],
)
def test_whether_a_command_writes_files(text: str, writes: bool, only_nccl: bool) -> None:
    """Its output alone reaches nobody; NCCL's files never override the environment."""
    assert writes_files(text) is writes
    assert writes_only_nccl_file(text) is only_nccl


def test_whether_a_command_changes_files() -> None:
    """Removing one counts, too."""
    for text in (
        "echo > a",
        "chmod 600 a",
        "chown 1 a",
        "rm -f a",
        "touch a",
        "truncate a",
        "unlink a",
    ):
        assert changes_files(text)
    for text in ("cat a", "form a", "grep rm"):
        assert not changes_files(text)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cp", "/config/nccl.conf", "/etc/nccl.conf"], "/etc/nccl.conf"),
        (["cp", "/config/rccl.conf", "/etc/"], "rccl.conf"),
        (["/bin/cp", "-f", "/config/x", "/etc/nccl.conf"], "/etc/nccl.conf"),
        (["cp", "/config/nccl.conf", "/etc"], "nccl.conf"),
        (["sh", "-c", "cp /config/nccl.conf $HOME/"], "nccl.conf"),
        (["sh", "-c", "cp /config/.nccl.conf ~"], "nccl.conf"),
        (["cp", "/config/.nccl.conf", "/root/"], "nccl.conf"),
        (["cp", "/config/nccl.conf", "/tmp/"], ""),
        (["sh", "-c", "cp '/config/x' '/etc/nccl.conf'"], "/etc/nccl.conf"),
        (["sh", "-c", "set -e\nmv a ~/.nccl.conf; train"], "~/.nccl.conf"),
        (["sh", "-c", "true && ln -s /c/nccl.conf /etc/nccl.conf && train"], "/etc/nccl.conf"),
        (["sh", "-c", "install -m 644 a /etc/nccl.conf 2>/dev/null"], "/etc/nccl.conf"),
        (["sh", "-c", "cat /config/a > /etc/nccl.conf"], "/etc/nccl.conf"),
        (["sh", "-c", "envsubst < a | tee /etc/nccl.conf"], "/etc/nccl.conf"),
        (["sh", "-c", "[ -f a ] || cp a /etc/nccl.conf"], "/etc/nccl.conf"),
        (["sh", "-c", "cp /config/a /etc/nccl.conf || true; train"], "/etc/nccl.conf"),
        (["sh", "-c", "test -f a||cp a /etc/nccl.conf||:"], "/etc/nccl.conf"),
        (["sh", "-c", "(cp a /etc/nccl.conf) && train"], "/etc/nccl.conf"),
        (["sh", "-c", "(cp '/config/nccl.conf' /etc)"], "nccl.conf"),
        (["sh", "-c", "curl -s b | tee /etc/nccl.conf"], "/etc/nccl.conf"),
        (["cp", "/etc/nccl.conf", "/tmp/saved"], ""),
        (["cp", "/config/x", "/etc"], ""),
        (["cp", "/etc/nccl.conf"], ""),
        (["cat", "/etc/nccl.conf"], ""),
        (["sh", "-c", "set -e\n # cp a /etc/nccl.conf\ntrain"], ""),
        (["sh", "-c", ">/etc/nccl.conf"], ""),
        (["sh", "-c", "echo A=1 > /etc/nccl.conf"], ""),
        (["sh", "-c", "printf 'A=1\n' | tee /etc/nccl.conf"], ""),
        (["sh", "-c", 'echo "A=1\nB=1" > /etc/nccl.conf'], ""),
        (["sh", "-c", "/bin/cat <a >/etc/nccl.conf"], "/etc/nccl.conf"),
        (["sh", "-c", "{ echo A=1; } > /etc/nccl.conf"], ""),
        (["sh", "-c", "( echo A=1; ) > /etc/nccl.conf"], ""),
        (["sh", "-c", "if a; then echo A=1; fi > /etc/nccl.conf"], ""),
        (["sh", "-c", "for a in b; do echo A=1; done > /etc/nccl.conf"], ""),
        (["sh", "-c", ": > /etc/nccl.conf"], ""),
        (["sh", "-c", "cat > /etc/nccl.conf <<END\nA=1\nEND"], ""),
        (["sh", "-c", "cat a > /etc/other.conf; rm /etc/nccl.conf"], ""),
        ([], ""),
    ],
)
def test_a_file_whose_content_the_words_do_not_have(words: list[str], expected: str) -> None:
    """What `echo` or a here-document writes is in the words; what `cp` copies is not."""
    assert file_filled_from_elsewhere(words) == expected
