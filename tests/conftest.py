"""Settings of Hypothesis: no deadline, for slow machines; in CI the same examples each time.

And Ctrl-C is heard: what a shell starts in the background ignores it, with all that it starts.
"""

import os
import signal

from hypothesis import settings

#: Here, and not in a folder's own conftest, so that folders share one cluster.
pytest_plugins = ["tests.cluster.fixtures"]

settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
