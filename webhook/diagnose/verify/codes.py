"""All codes of `verify`, in the order of their tables in docs/verify.md."""

from __future__ import annotations

from webhook.diagnose.verify.evaluate import FILE_CODES
from webhook.diagnose.verify.fault_localization import SUSPECT_CODES
from webhook.diagnose.verify.grade import GRADE_CODES
from webhook.diagnose.verify.outliers import PEER_CODES
from webhook.diagnose.verify.published import BELOW_PUBLISHED
from webhook.diagnose.verify.runs.errors import POD_CODES
from webhook.diagnose.verify.runs.nccl_run import NO_NCCL_TESTS
from webhook.diagnose.verify.runs.pair_output import PAIR_CODES
from webhook.model.finding import Code

#: Of every command.
RESULT_CODES = (*GRADE_CODES, *PEER_CODES, BELOW_PUBLISHED, *FILE_CODES)
#: Of `verify run` and `verify nccl`.
POD_RUN_CODES = (*PAIR_CODES, *POD_CODES, NO_NCCL_TESTS)

CODES: tuple[Code, ...] = (*RESULT_CODES, *SUSPECT_CODES, *POD_RUN_CODES)
