"""Settings of Hypothesis: no deadline, for slow machines; in CI the same examples each time.

With mutants the same examples run, too, and a failing one is neither shrunk nor stored for the next
mutant. Ctrl-C is enabled again: processes that a shell starts in the background ignore it.
"""

import os
import signal

from hypothesis import Phase, settings

#: Here, and not in a folder's own conftest, so that folders share one cluster.
pytest_plugins = ["tests.cluster.fixtures"]

settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate), database=None
)
if "MUTANT_UNDER_TEST" in os.environ:  # by mutmut
    settings.load_profile("mutants")
else:
    settings.load_profile("ci" if os.environ.get("CI") else "developer")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
