"""All codes of `discover`."""

from __future__ import annotations

from webhook.diagnose.discover.checks import NODE_CODES
from webhook.diagnose.discover.cluster import CLUSTER_CODES
from webhook.diagnose.discover.consistency import CONSISTENCY_CODES
from webhook.diagnose.discover.cut_outputs import OUTPUT_CUT
from webhook.diagnose.discover.drift import DRIFT_CODES
from webhook.diagnose.discover.expected import HCA_COUNT_DIFFERS, NODE_COUNT_DIFFERS
from webhook.diagnose.discover.node import GPU_PRODUCT_DIFFERS
from webhook.diagnose.discover.plan import ROCE_NETWORKS_MISSING
from webhook.diagnose.discover.port_checks import PORT_CODES
from webhook.diagnose.discover.site import TOOLS_DISAGREE
from webhook.diagnose.discover.tool_failures import TOOL_FAILED
from webhook.diagnose.discover.unanswered import HOST_UNANSWERED
from webhook.diagnose.discover.unread_lines import DEVICE_NOT_OPENED, LINES_UNREAD
from webhook.model.finding import Code

CODES: tuple[Code, ...] = (
    *PORT_CODES,
    *CONSISTENCY_CODES,
    *NODE_CODES,
    TOOLS_DISAGREE,
    GPU_PRODUCT_DIFFERS,
    ROCE_NETWORKS_MISSING,
    HOST_UNANSWERED,
    OUTPUT_CUT,
    DEVICE_NOT_OPENED,
    TOOL_FAILED,
    LINES_UNREAD,
    NODE_COUNT_DIFFERS,
    HCA_COUNT_DIFFERS,
    *DRIFT_CODES,
    *CLUSTER_CODES,
)
