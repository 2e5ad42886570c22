# All stages start from the same image, so that each one has the interpreter that the venv points to.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS dependencies
RUN python3 -m venv /app
COPY requirements.lock ./
RUN /app/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements.lock

FROM dependencies AS code
WORKDIR /src
COPY pyproject.toml LICENSE ./
COPY webhook/ webhook/
COPY certs/ certs/
RUN /app/bin/pip install --no-cache-dir --no-deps --no-build-isolation --prefix /code .

# pip and setuptools are not needed at run time, and pip can fetch code. The asyncio half of the
# Kubernetes client is 68 MB that nothing imports.
FROM dependencies AS lean
RUN /app/bin/pip uninstall --yes --quiet setuptools pip \
    && rm -r /app/lib/python3.*/site-packages/kubernetes/aio

FROM ${BASE}
# Two layers, so that a node that already has another version of the code fetches only a few hundred kB.
COPY --from=lean /app /app
COPY --from=code /code /app
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="rdma-webhook" \
      org.opencontainers.image.description="A Kubernetes admission webhook that makes NCCL, UCX and MPI run over RDMA in pods that ask for it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# The root file system is read-only in the cluster, so write no bytecode. Write logs without buffering. PATH is
# for `kubectl exec deployment/rdma-webhook -- rdma-webhook certs status`.
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PATH=/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# A number, so that the kubelet can check runAsNonRoot.
USER 65532:65532
WORKDIR /
# /mutate, /preview, then health and metrics
EXPOSE 8443 8444 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["rdma-webhook"]
CMD ["serve"]
