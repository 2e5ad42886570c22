"""CustomResourceDefinitions: the kinds of other projects."""

from __future__ import annotations

from tests.cluster.cluster import Cluster


def install_kinds(cluster: Cluster, source: str, definitions: str | None = None) -> list[str]:
    """Apply the definitions of a file or a folder, or `definitions` if `source` is `-`.

    Return their names once the API server serves them, a moment after they are established.
    """
    cluster.skip_if_existing("the kinds of other projects")
    # Ray's are too long for the annotation where a client-side apply stores them.
    apply = ("apply", "--server-side", "--force-conflicts", "--output=name", "--filename", source)
    names = cluster.kubectl(*apply, input=definitions).split()
    wait = ("wait", "--for=condition=Established", "--timeout=300s", *names)
    kinds = ",".join(name.partition("/")[2] for name in names)

    def served() -> bool:
        # `kubectl wait` fails, instead of waiting, on a definition without conditions.
        established = cluster.kubectl(*wait, check=False).count("condition met") == len(names)
        listed = ("get", kinds, "--all-namespaces", "--output=name")
        return established and "the server" not in cluster.kubectl(*listed, check=False)

    cluster.processes.until("kinds served", served)
    return names
