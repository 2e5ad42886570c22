"""The command line: `serve | preview | why | discover | verify | check-config | ...`.

Each command is a module that is imported only when the command runs, so that a
preview does not load the web server. Exit codes: 0 done, 1 a negative answer (a
pod would be denied, a file is invalid), 2 wrong usage or unreadable input, 3 no
certain answer (verify); 130 after Ctrl-C and 141 if the reader of a pipe has gone,
as in shells. A traceback is printed only if RDMA_WEBHOOK_TRACEBACK is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from webhook.cli.output import discard, fail
from webhook.cli.parser import parse_words
from webhook.errors import WebhookError

_INTERRUPTED, _BROKEN_PIPE = 130, 141
_TRACEBACK = "RDMA_WEBHOOK_TRACEBACK"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        arguments = parse_words(sys.argv[1:] if argv is None else list(argv))
        code: int = arguments.module.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        discard()
        return _BROKEN_PIPE
    except WebhookError as error:
        return fail(str(error))
    except OSError as error:  # from writing the output: unreadable input is a WebhookError
        discard()
        return fail(f"cannot write the output: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        return fail(_internal(error))
    return code


def _internal(error: Exception) -> str:
    cause = f"{type(error).__name__}: {error}".splitlines()[0]
    return (
        f"internal error: {cause:.300}; please run the command again with {_TRACEBACK}=1, and "
        "report the traceback"
    )
