"""Commands and shell scripts: with the words that the webhook looks for, and every trap."""

from __future__ import annotations

from tests.fuzz.dice import Dice

ARGVS: tuple[tuple[str, ...], ...] = (
    ("python", "train.py"),
    ("/usr/sbin/sshd", "-De"),
    ("mpirun", "--allow-run-as-root", "-np", "16", "./train"),
    ("mpirun", "-np", "16", "./train"),
    ("/opt/openmpi/bin/mpirun", "-np", "1", "./a", ":", "-np", "8", "./b"),
    ("/opt/openmpi/bin/mpirun", "-np", "8", "./a"),
    ("mpirun.openmpi", "-np", "8", "-app", "file"),
    ("mpirun", "--mca", "coll_hcoll_enable", "1", "./train"),
    ("mpiexec.hydra", "-f", "hosts", "./train"),
    ("mpirun", "--version"),
    ("horovodrun", "-np", "8", "python", "train.py"),
    ("horovodrun", "--log-level", "DEBUG", "--hosts", "a:1,b:1", "python", "train.py"),
    ("deepspeed", "--hostfile=/job/hostfile", "train.py"),
    ("ray", "start", "--head"),
    ("env", "CUDA_VISIBLE_DEVICES=0,1", "python3", "serve.py"),
    ("mpirun", "-np", "2", "-H", "localhost,a", "./train"),
    ("/entry.sh", "/bin/bash", "-c", "service ssh start"),
    ("env", "A=b", "timeout", "60", "mpirun", "-x", "A", "./train"),
    ("sudo", "mpirun", "-x", "A", "./train"),
    ("numactl", "-m", "0", "orterun", "./train"),
    ("env", "-u", "UCX_TLS", "NCCL_IB_DISABLE=1", "python", "train.py"),
    ("gosu", "1000", "torchrun", "train.py"),
    ("su", "-", "worker", "-c", "NCCL_NET=Socket torchrun train.py"),
    ("mpirun", "-np", "8", "-x", "NCCL_NET=Socket", "-x", "UCX_TLS=$X", "./train"),
    ("torchrun", "--nproc-per-node=8", "train.py"),
    ("vllm", "serve", "--tensor-parallel-size", "8"),
    ("sleep", "infinity"),
    ("mpirun",),
    (),
)
SHELLS: tuple[tuple[str, ...], ...] = (
    ("bash", "-c"),
    ("sh", "-c"),
    ("/bin/bash", "-euo", "pipefail", "-c"),
    ("/bin/sh", "-xc"),
    ("bash", "--rcfile", "x", "-c"),
    ("env", "A=b", "sh", "-c"),
    ("tini", "--", "bash", "-lc"),
    ("bash", "-c", "--"),
    ("bash", "-c", 'set -e; exec "$@"', "sh"),
)
_LAUNCHES = (
    "mpirun --allow-run-as-root -np 16 ./train",
    "mpirun -x PATH \\\n  -np 8 ./train  # mpirun",
    "mpirun -np 8 ./train",
    "/opt/openmpi/bin/mpirun -np 8 ./train",
    "OMPI_MCA_btl=tcp mpirun ./train",
    "time mpirun -x A ./train",
    "mpirun --hostfile h -genv FI_PROVIDER efa ./train",
    "ulimit -n 65536; ray start --head --block",
    "sleep 3 && CUDA_VISIBLE_DEVICES=$(ls /proc/driver/nvidia/gpus | paste -sd,) python3 serve.py",
    "exec mpirun -x A ./train",
    "sudo mpirun -x A ./train",
    "if ! mpirun -x A ./a; then prterun ./b; fi",
    "mpirun -x A ./a >log 2>&1",
    "mpirun >log -x A ./a",
    "mpirun<in -x A",
    "mpirun -x A --mca coll ^hcoll ./train",
    "mpirun -x A --tune file ./train",
    "mpirun -x A $ARGS",
    'mpirun -x A "$@"',
    "'mpirun' -x A",
    'm"pi"run -x A',
    "mpi\\run -x A",
    "mpirun\\\n -x A",
    "mpi\\\nrun -x A",
    "$MPIRUN -x A; $D/mpirun -x A",
    "eval mpirun -x A",
    "echo 'mpirun -x B' nccl.conf",
    "export NCCL_NET=Socket; torchrun train.py",
    "export NCCL_IB_DISABLE=$X UCX_TLS=tcp; torchrun train.py",
    "if [ $X ]; then export NCCL_IB_DISABLE=1; fi; torchrun train.py",
    "NCCL_IB_DISABLE=1 torchrun a.py; torchrun b.py",
    "ulimit -l 64; exec gosu 1000 torchrun train.py",
    "sudo -E -u worker env NCCL_NET=IB mpirun -x NCCL_IB_HCA=mlx5_9 ./train",
    "set -a; NCCL_NET=Socket; unset NCCL_IB_HCA; torchrun train.py",
    "su - worker -c 'export NCCL_NET=Socket; torchrun a.py'",
    'echo "$(mpirun -x A ./a)"',
    "x=`mpirun -x A`",
    "(mpirun -x A)",
    "{ mpirun -x A; }",
    "mpirun() { :; }; mpirun -x A",
    "alias mpirun=x; mpirun -x A",
    "for i in mpirun 2; do mpirun -x A $i; done",
    "case mpirun in mpirun) mpirun -x A ;; *) ;; esac",
    "cat <<E\nmpirun -x A\nE",
    "cat <<'E' | mpirun -x A\nmpirun\nE",
    "cat <<-E\n\tmpirun -x A\n\tE\nmpirun -x B",
    "mpirun -x A <<< mpirun",
    "mpirun -x A < <(mpirun -x B)",
    "[[ mpirun == x ]] && mpirun -x A",
    "a=(mpirun -x); ${a[@]}",
    "a[mpirun]=1 mpirun -x A",
    "((mpirun=1)); mpirun -x A",
    "echo $((1+2)) ${x:-mpirun -x A} ${x#*mpirun}",
    "! mpirun -x A || mpiexec -x B & wait",
    "coproc mpirun -x A",
    "ssh host mpirun -x A",
    "xargs mpirun -x A",
    "bash -c 'mpirun -x A'",
    'sh -c "mpirun -x A ./$X"',
    "/usr/sbin/sshd; mpiexec --allow-run-as-root --host ${HOSTS} ./train | tee log",
    "service ssh start",
    "function mpirun { :; }",
    "echo ${x:-${y:-`mpirun -x A`}}",
    "echo $'mpirun\\n' $\"mpirun\"",
    "mpirun -x A #mpirun -x B",
    "echo a#b mpirun # mpirun",
    "{a,mpirun} -x",
    "mpirun -x A &>log",
    "2>&1 mpirun -x A",
    "A=1 B=2 >x mpirun -x A",
    "mpirun\t-x\tA",
    "é mpirun -x é",
    "export OMPI_MCA_coll_hcoll_enable=1; mpirun -x A",
    "mpirun -x A &\nmpirun -x B;;\n",
    "while mpirun -x A; do :; done <in",
    "select x in mpirun; do mpirun -x A; done",
    "until [ -e x ]; do sleep 1; done",
    "trap 'mpirun -x A' EXIT",
    "echo > mpirun",
)
_TRAPS = (
    *("'", '"', "`", "$(", "${", "$((", "((", ")", "))", "}", "{", "[[", "]]", "(", "\\", "\\\n"),
    *("<<E\n", "<<-'E'\n", "\nE\n", "<<", "<<<", "#", "# mpirun\n", ";", ";;", "&", "|", "&&"),
    *("\n", "\t", "\r\n", "\r", "\0", "é", "\u202e", "\U0001f600", "\x1b[31m", " ", "!", "$", "$'"),
    *("if", "then", "fi", "do", "done", "case x in", "esac", "function f", "f()", "time", "in"),
    *(
        "mpirun ",
        "sshd ",
        "mpiexec",
        "rterun",
        "-x A ",
        "[é",
        "a=(",
        "a[",
        "]=",
        "~",
        "*",
        "=",
        "$@",
    ),
    *(">", "<", ">(", "2>&1", ">|", "&>", "<&-", "-mca coll_hcoll_enable 0", "$$", "$(VAR)"),
)
OPENINGS = ("( ", "{ ", "${a:-", "$(", "`", "((", "$((", "[[ ", "if ", "case x in x) ", '"$(', "<(")
_BLOCKS = (
    "@",
    "@",
    "@",
    "if @; then @; fi",
    "for i in a b; do @; done",
    "(@)",
    "x=$(@)",
    "f() { @; }",
    "{ @; } | cat",
    "set -e\n@",
    "@ && @",
    "case $x in a) @;; b) @;; esac",
    'exec "$@"',
)


def argv_of(dice: Dice) -> list[str]:
    """Draw a container's words: a program and its arguments, or a shell with a script."""
    if dice.one_in(2):
        return list(dice.pick(ARGVS))
    words = [*dice.pick(SHELLS), script_of(dice)]
    if dice.one_in(8):
        words += dice.pick(ARGVS)
    return words


def script_of(dice: Dice) -> str:
    """Draw a script that a shell may or may not accept."""
    kind = dice.below(8)
    if kind < 5:
        script = "\n".join(_block(dice) for _ in range(1 + dice.small(4)))
        return script if kind < 3 else _noise(dice, script)
    if kind < 7:
        return "".join(dice.pick(_TRAPS) for _ in range(dice.below(30)))
    return _deep(dice)


def _block(dice: Dice) -> str:
    block = dice.pick(_BLOCKS)
    while "@" in block.replace('"$@"', ""):
        block = block.replace("@", dice.pick(_LAUNCHES).replace("@", "\x01"), 1)
    return block.replace("\x01", "@")


def _noise(dice: Dice, script: str) -> str:
    for _ in range(1 + dice.small(3)):
        at = dice.below(len(script) + 1)
        kind = dice.below(3)
        cut = dice.small(6) if kind else 0
        added = dice.pick(_TRAPS) if kind < 2 else ""
        script = script[:at] + added + script[at + cut :]
    return script


def _deep(dice: Dice) -> str:
    """Repeat something many times, but rarely so often that the size alone matters."""
    limit = 4000 if dice.one_in(30) else 200
    piece = dice.pick(OPENINGS) if dice.one_in(2) else dice.pick(_TRAPS) + dice.pick(_TRAPS)
    repeated = piece * dice.below(limit)
    return dice.pick(("", "mpirun -x A\n")) + repeated + dice.pick(("", "\nmpirun -x A", "a"))
