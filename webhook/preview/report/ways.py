"""How readers of a preview request another one: by options, or by parameters over HTTP."""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.facts import LABEL


class Ways(NamedTuple):
    """The words for one kind of reader, as parts of sentences."""

    enable: str  #: as if the pods had opted in
    labels: str  #: with the labels of their namespaces
    fabrics: str  #: with their own fabrics, where the report is about an example's
    fabrics_file: str  #: what to do with a fabrics file


#: With the options of `rdma-webhook preview`.
OPTIONS = Ways(
    "--enable",
    f"give --live, --namespace-label {LABEL}=true or --facts FILE",
    "give yours with -c FABRICS",
    "give it with -c, or use check-config",
)
#: With the parameters of `/preview`.
PARAMETERS = Ways(
    "?enable=true",
    f"give ?namespace-label={LABEL}=true",
    "this server was started without fabrics",
    "this server has its own; send a pod or a workload",
)
