"""Change functions in small ways, and list the changes that no test notices: `make mutants`.

mutmut makes the mutants (another operator, constant or argument) and runs the fast tests that
reach the function. A mutant survives if none of them fails. Without arguments, the functions that
changed since the working tree left main are mutated.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from multiprocessing import Process
from pathlib import Path

from mutmut.__main__ import cli
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name, mangled_name_from_mutant_name

from tests.mutants.changed import PLACES, base_of, changed_since, functions

#: mutmut's folder: the code with all mutants, copies of the tests, the results.
FOLDER = Path("mutants")
#: Its output, unless it goes to a terminal.
LOG = FOLDER / "mutmut.log"
#: How long functions that changed are mutated.
MINUTES = 10.0
#: In seconds, for mutmut to end its tests once it is told to.
PATIENCE = 30.0
#: What mutmut calls results, besides killed and timeout.
SURVIVED, NOT_RUN = "survived", "not checked"


def main() -> int:
    """Run mutants; return 1 if one survived, 2 if none could be run."""
    asked = _arguments()
    wanted = _mutants(_functions(asked))
    if not wanted:
        print("mutants: there is nothing to mutate")
        return 0
    print(f"mutants: {sum(map(len, wanted.values()))}, made of {len(wanted)} files", flush=True)
    if not asked.all:
        shutil.rmtree(FOLDER, ignore_errors=True)  # else results would outlive a change of tests
    child = Process(target=_mutmut, args=(wanted, asked))
    child.start()
    _wait(child, asked.minutes and asked.minutes * 60)
    found = {path: _results(path, names) for path, names in wanted.items()}
    statuses = {status for results in found.values() for status in results.values()}
    _report(found)
    if statuses == {NOT_RUN}:
        print("mutants: none was run; mutmut says why, above or in", LOG)
        return 2
    return 1 if SURVIVED in statuses else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--base", default="main", help="the branch or commit that was changed")
    parser.add_argument("--all", action="store_true", help="mutate everything; resumes")
    parser.add_argument("--minutes", type=float, help="stop then; default: 10 for what changed")
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
    """Return the names of the mutants of functions, by file."""
    found: dict[str, list[str]] = {}
    for path, keys in wanted.items():
        for name in mutate_file_contents(path, Path(path).read_text("utf-8")).mutant_names:
            if mangled_name_from_mutant_name(name) in keys:
                found.setdefault(path, []).append(get_mutant_name(Path(path), name))
    return found


def _mutmut(wanted: dict[str, list[str]], asked: argparse.Namespace) -> None:
    """Run mutmut on the mutants. It leaves other files as they are, which saves time."""
    if not sys.stdout.isatty():  # mutmut shows its progress with a thousand carriage returns
        FOLDER.mkdir(exist_ok=True)
        with LOG.open("w") as log:
            os.dup2(log.fileno(), sys.stdout.fileno())
    config().only_mutate = list(wanted)
    # Given names, mutmut first runs their tests by name, as it will with each mutant, and ends if
    # one is not found. Without them, it goes on where it ended.
    names = () if asked.all else (name for names in wanted.values() for name in names)
    cli.main(["run", "--max-children", str(asked.jobs), *names], prog_name="mutmut")


def _wait(child: Process, seconds: float) -> None:
    """Wait until mutmut ends; interrupt it when its time is over, or when the user does."""
    try:
        child.join(seconds)
    except KeyboardInterrupt:
        print()  # mutmut was interrupted, too
    else:
        if child.is_alive() and child.pid is not None:
            os.kill(child.pid, signal.SIGINT)
    child.join(PATIENCE)
    child.kill()


def _results(path: str, names: Iterable[str]) -> dict[str, str]:
    """Return the status of each mutant of a file, as mutmut calls it."""
    data = SourceFileMutationData(path=path)
    try:
        data.load()
    except ValueError:
        print(f"mutants: {path}: mutmut was writing its results when it was interrupted")
    return {name: status_by_exit_code[data.exit_code_by_key.get(name)] for name in names}


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
