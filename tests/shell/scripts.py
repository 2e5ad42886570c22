"""Hypothesis strategies for shell scripts: of words that matter, of characters, and broken ones."""

from __future__ import annotations

from hypothesis import strategies as st

words = st.sampled_from(
    [
        *("mpirun", "mpiexec", "'mpirun'", "/opt/openmpi/bin/mpirun", "$D/mpirun", "sshd", "echo"),
        *("env", "A=b", "exec", "time", "timeout 60", "sudo", "sh -c", "numactl --x", "command"),
        *("-x A", "-np 2", "--allow-run-as-root", "-mca btl tcp", "--mca coll ^hcoll", ":", "--"),
        *("$X", '"$X"', "${X:-y}", "$(mpirun x)", "`mpirun x`", '"$@"', "'a b'", "a\\ b", "é"),
        *(">log", "2>&1", "<in", "<<E\nmpirun x\nE\n", "\\\n", "# mpirun", "$$", "$(VAR)", "{a,b}"),
        *('"a $(mpirun b) c"', "${X:-$(mpirun y)}", "$((1+2))", "A=(x $(mpirun z))", "<(mpirun p)"),
        *("$(echo a | tr b c)", '"${X}"', "$'a\\'b'", "[[ -n a && b ]]", "((1))", "!", "a#b"),
    ]
)
_joints = st.sampled_from(
    [" ", " ", " ", "\n", "; ", " && ", " | ", " & ", "", "\n\n", " |\n", "&&\n"]
)
_blocks = st.sampled_from(
    [
        *("{}", "if {}; then {}; fi", "for i in a; do {}; done", "({})", "x=$({})"),
        *("f() {{ {}; }}", "case a in a) {} ;; b) {}; esac", "while {}\ndo {}\ndone", "{{ {}; }}"),
        *("cat <<E\n$({})\nE", "cat <<E; {}\nx\nE", "for ((;;)); do {}; done", 'echo "$({})"'),
    ]
)
_fragments = st.sampled_from(
    [
        *"'\"\\$`(){}[];&|<>#!\n\t =ax",
        *("mpirun", "mpirun x\n", "$(", "${", "$((", "((", "[[", "]]", "<<", "<<-E", "\nE\n", "<("),
        *(
            ";;",
            "if ",
            "then ",
            "fi",
            "do ",
            "done",
            "for i in ",
            "case a in ",
            "esac",
            "a) ",
            "\\\n",
        ),
        *(
            "=(",
            "f()",
            "{ ",
            "; }",
            "&&",
            "||",
            ">a ",
            "2>",
            "$'",
            '$"',
            "function ",
            "time ",
            "! ",
        ),
    ]
)


@st.composite
def _composed(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        block = draw(_blocks)
        lines = [
            "".join(draw(words) + draw(_joints) for _ in range(draw(st.integers(1, 5))))
            for _ in range(block.count("{}"))
        ]
        for line in lines:
            block = block.replace("{}", line.strip(" ;&|\n") or ":", 1)
        parts.append(block.replace("{{", "{").replace("}}", "}"))
    return "\n".join(parts)


def scripts() -> st.SearchStrategy[str]:
    """Draw a script that a shell may or may not accept."""
    return _composed()


def fragments() -> st.SearchStrategy[str]:
    """Draw a text that hardly closes anything."""
    return st.lists(_fragments, max_size=25).map("".join)
