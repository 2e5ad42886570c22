"""Change functions in small ways, and list the changes that no test notices: `make mutants`.

mutmut makes the mutants (another operator, constant or argument); the fast tests that reach the
function are run on each. A mutant survives if none of them fails. Without arguments, the functions
that changed since the working tree left main are mutated.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from multiprocessing import Process
from pathlib import Path
from random import Random

import pytest
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd, setup_source_paths
from mutmut.utils.format_utils import mangled_name_from_mutant_name

from tests.mutants.changed import PLACES, base_of, changed_since, functions
from tests.mutants.forks import SURVIVED, ForkedTests

#: mutmut's folder: the code with all mutants, copies of the tests.
FOLDER = Path("mutants")
#: What pytest says of collecting the tests, and of the tests that fail without a mutant.
LOG = FOLDER / "pytest.log"
#: How each mutant ended that was run: a line with its name, a tab and a word.
RESULTS = FOLDER / "results.tsv"
#: How long functions that changed are mutated.
MINUTES = 10.0
#: In seconds, between two lines that say how far the run has come.
NEWS = 60.0
#: In seconds, for the tests to end once they are told to.
PATIENCE = 30.0
NOT_RUN = "not checked"


def main() -> int:
    """Run mutants; return 1 if one survived, 2 if none could be run."""
    asked = _arguments()
    wanted = _functions(asked)
    if not asked.all:
        shutil.rmtree(FOLDER, ignore_errors=True)  # else results would outlive a change of tests
    made = _sampled(_mutants(wanted), asked) if wanted else {}
    if not made:
        print("mutants: there is nothing to mutate")
        return 0
    print(f"mutants: {sum(map(len, made.values()))}, made of {len(made)} files", flush=True)
    known = _results() if asked.all else {}
    names = [name for each in made.values() for name in each if name not in known]
    child = Process(target=_run, args=(names, asked))
    child.start()
    _wait(child, asked.minutes and asked.minutes * 60)
    known = _results()
    _report(
        {path: {name: known.get(name, NOT_RUN) for name in each} for path, each in made.items()}
    )
    if names and not known:
        print("mutants: none was run; pytest says why in", LOG)
        return 2
    return 1 if SURVIVED in known.values() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--base", default="main", help="the branch or commit that was changed")
    parser.add_argument("--all", action="store_true", help="mutate everything; resumes")
    parser.add_argument("--minutes", type=float, help="stop then; default: 10 for what changed")
    parser.add_argument("--sample", type=int, help="that many mutants of each place, at random")
    parser.add_argument("--seed", type=int, default=1, help="of the sample; default: 1")
    parser.add_argument("--tests", type=str.split, help="run these; default: the fast ring")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("places", nargs="*", type=Path, help="files or folders to mutate instead")
    asked = parser.parse_args()
    if asked.minutes is None and not asked.all and not asked.places:
        asked.minutes = MINUTES
    return asked


def _functions(asked: argparse.Namespace) -> dict[str, set[str]]:
    """Return the functions to mutate, by file; raise SystemExit if git does not know the base."""
    if asked.all or asked.places:
        places = asked.places or [Path(place) for place in PLACES]
        files = [file for place in places for file in sorted(place.rglob("*.py")) or [place]]
        return {str(file): set(functions(file.read_text("utf-8"))) for file in files}
    try:
        base = base_of(asked.base)
        found = changed_since(base)
    except subprocess.CalledProcessError as error:
        print(f"mutants: {error.stderr.strip()} (BASE=... names another commit)", file=sys.stderr)
        raise SystemExit(2) from error
    print(f"mutants: {sum(map(len, found.values()))} functions changed since {base:.12}")
    return found


def _mutants(wanted: dict[str, set[str]]) -> dict[str, list[str]]:
    """Write the code with its mutants into the folder; return the names of those of `wanted`."""
    config().only_mutate = list(wanted)  # it leaves other files as they are, which saves time
    FOLDER.mkdir(exist_ok=True)
    set_mutant_under_test("")
    with Path(os.devnull).open("w", encoding="utf-8") as nothing, redirect_stdout(nothing):
        copy_src_dir()
        copy_also_copy_files()
        create_mutants(os.cpu_count() or 1)
    found = {path: list(_made_of(path, keys)) for path, keys in wanted.items()}
    return {path: names for path, names in found.items() if names}


def _made_of(path: str, keys: set[str]) -> Iterator[str]:
    data = SourceFileMutationData(path=path)
    data.load()
    for name in data.exit_code_by_key:
        if mangled_name_from_mutant_name(name).rpartition(".")[2] in keys:
            yield name


def _sampled(made: dict[str, list[str]], asked: argparse.Namespace) -> dict[str, list[str]]:
    """Choose mutants at random, as many of each place that was named."""
    if asked.sample is None:
        return made
    places = asked.places or [Path()]
    chosen: set[str] = set()
    for place in places:
        inside = [each for path, each in made.items() if Path(path).is_relative_to(place)]
        names = [name for each in inside for name in each]
        chosen |= set(Random(asked.seed).sample(names, min(asked.sample, len(names))))
    found = {path: [name for name in each if name in chosen] for path, each in made.items()}
    return {path: each for path, each in found.items() if each}


def _run(names: list[str], asked: argparse.Namespace) -> None:
    """Run the tests of the mutants, and write each result down at once."""
    os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"  # `tests` is imported already, from elsewhere
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setup_source_paths()
    start = heard = time.monotonic()
    done: Counter[str] = Counter()
    news = os.dup(sys.stdout.fileno())
    with LOG.open("w") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())

    def report(name: str, ended: str) -> None:
        nonlocal heard
        results.write(f"{name}\t{ended}\n")
        results.flush()
        done[ended] += 1
        if time.monotonic() - heard > NEWS:
            heard = time.monotonic()
            line = f"{_line(f'after {(heard - start) / 60:.0f} minutes', done)} of {len(names)}\n"
            os.write(news, line.encode())

    with RESULTS.open("a", encoding="utf-8") as results:
        plugin = ForkedTests(
            names,
            jobs=asked.jobs,
            folder=FOLDER,
            activate=set_mutant_under_test,
            reached=_reached,
            report=report,
        )
        with change_cwd(FOLDER):
            pytest.main(
                [
                    *("--rootdir=.", "--capture=sys", "--assert=plain", "-q"),
                    *(asked.tests or config().pytest_add_cli_args_test_selection),
                    *config().pytest_add_cli_args,
                ],
                plugins=[plugin],
            )
    for test in plugin.failed:
        os.write(news, f"mutants: without any mutant, this fails: {test}\n".encode())


def _reached() -> list[str]:
    """Return the functions that were called since the last time."""
    called = state()._stats
    functions = list(called)
    called.clear()
    return functions


def _wait(child: Process, seconds: float) -> None:
    """Wait until the child ends; interrupt it when its time is over, or when the user does."""
    try:
        child.join(seconds)
    except KeyboardInterrupt:
        print()  # the child was interrupted, too
    else:
        if child.is_alive() and child.pid is not None:
            os.kill(child.pid, signal.SIGINT)
    child.join(PATIENCE)
    child.kill()


def _results() -> dict[str, str]:
    """Return how the mutants ended that were run."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def _report(found: dict[str, dict[str, str]]) -> None:
    """Print the diff of each survivor, then for each file how many mutants ended how."""
    for path, results in found.items():
        for name, status in results.items():
            if status == SURVIVED:
                print(f"\n{name}\n{get_diff_for_mutant(name, path=path)}")
    print()
    total: Counter[str] = Counter()
    for path, results in found.items():
        counts = Counter(results.values())
        total += counts
        print(_line(path, counts))
    print(_line("in all", total))


def _line(what: str, counts: Counter[str]) -> str:
    said = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return f"{what}: {counts.total()} mutants: {said}"


if __name__ == "__main__":
    sys.exit(main())
