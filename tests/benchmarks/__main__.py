"""Run all benchmarks and print one table: `make bench`."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

from tests.benchmarks import decide, facts, hostile, node_list, serving, worker, worst
from tests.benchmarks.figures import print_rows
from webhook.serve.transport.process import collect_garbage_rarely


def main() -> int:
    """Print the table; exit with 1 if a goal was missed."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "fastapi", "orjson"))
    collect_garbage_rarely()  # as `serve` does
    print(f"{platform.machine()}, CPython {platform.python_version()}, {libraries}\n")
    rows = [*decide.run(), *worst.run(), *serving.run(), *worker.run(), *facts.run()]
    rows += node_list.run()
    rows += hostile.run()
    print_rows(rows)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
