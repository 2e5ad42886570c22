from __future__ import annotations

from cryptography import x509

from certs.durations import Durations
from certs.issue import issue_ca
from certs.keeper import ServedLeaf
from certs.serving import ServingContext
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import INSTALLATION


def test_a_leaf_is_for_the_names_of_its_service() -> None:
    """The leaf has all names of the Service, and the given lifetime."""
    clock, times = Ticking(), Durations()
    served = ServedLeaf(INSTALLATION, ServingContext(clock=clock), times, clock)
    served.serve(issue_ca())
    assert served.leaf is not None
    leaf = x509.load_pem_x509_certificate(served.leaf.certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [
        "rdma-webhook.rdma-webhook.svc",
        "rdma-webhook.rdma-webhook.svc.cluster.local",
        "rdma-webhook.rdma-webhook",
        "rdma-webhook",
    ]
    assert leaf.not_valid_after_utc == (clock.now() + times.leaf).replace(microsecond=0)
