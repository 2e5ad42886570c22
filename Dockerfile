# BASE becomes the image: it must have Python; whatever else it has, such as a shell, stays in the image. BUILDER
# must have the same minor version of Python at the same path, and also venv and a shell.
ARG BASE=python:3.13-slim-bookworm
ARG BUILDER=${BASE}

# On this machine's architecture, whatever the image's is: nothing of the image runs during a build.
FROM --platform=${BUILDPLATFORM} ${BUILDER} AS dependencies
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN python3 -m venv /build && python3 -m venv --without-pip /app
COPY requirements.lock ./
ARG TARGETARCH
RUN case "${TARGETARCH}" in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) machine=${TARGETARCH} ;; esac \
    && /build/bin/pip install --quiet --no-compile --only-binary :all: --require-hashes --requirement requirements.lock \
        --target "$(echo /app/lib/python3.*/site-packages)" --platform "manylinux_2_28_${machine}" \
        --platform "manylinux_2_17_${machine}" --platform "manylinux2014_${machine}"

# Bytecode is compiled here, since the root file system is read-only in the cluster. It names no times, so that two builds
# are equal, and it is only used for a source with the same hash.
FROM dependencies AS code
WORKDIR /src
COPY pyproject.toml LICENSE ./
COPY webhook/ webhook/
COPY certs/ certs/
RUN /build/bin/pip --python /app/bin/python install --quiet --no-compile --no-deps --no-build-isolation --prefix /code . \
    && PYTHONHASHSEED=0 /app/bin/python -m compileall -q --invalidation-mode checked-hash -s /code -p /app /code

# Only the webhook's commands import what is in the image: tests/unit/test_image.py has the proof.
# - The build needs setuptools. Nothing colors or formats source with rich.
# - Of the Kubernetes client, the asyncio half and all classes for kinds and API groups are unused.
FROM dependencies AS lean
RUN cd /app/lib/python3.*/site-packages \
    && /build/bin/pip --python /app/bin/python uninstall --quiet --yes setuptools \
        aiohappyeyeballs aiohttp aiohttp-retry aiosignal attrs frozenlist multidict propcache yarl \
        markdown-it-py mdurl pygments \
    && rm -r bin kubernetes/aio /app/bin/*ctivate* \
    && find kubernetes/client/api kubernetes/client/models -name '*.py' ! -name __init__.py -delete \
    && PYTHONHASHSEED=0 /app/bin/python -m compileall -q -f --invalidation-mode checked-hash /app/lib

# Bytecode for the base, which may lack it, in a tree that is laid over the base.
FROM dependencies AS stdlib
RUN folder=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
    && unused='/(dist-packages|distutils|ensurepip|idlelib|lib2to3|pydoc_data|site-packages|test|tkinter|turtledemo)/' \
    && PYTHONHASHSEED=0 python3 -m compileall -q -f --invalidation-mode checked-hash -x "${unused}" "${folder}" \
    && mkdir /stdlib \
    && find "${folder}" -name __pycache__ | grep -Ev "${unused}" | xargs cp --parents -r -t /stdlib

# The platform is the default, but buildah 1.28 would take the one above.
FROM --platform=${TARGETPLATFORM} ${BASE}
# The code is a layer of its own, so that a node that already has another version of it fetches only a few MB.
COPY --from=stdlib /stdlib /
COPY --from=lean /app /app
COPY --from=code /code /app
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="rdma-webhook" \
      org.opencontainers.image.description="A Kubernetes admission webhook that makes NCCL, UCX and MPI run over RDMA in pods that ask for it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Write no bytecode, and logs without buffering. PATH is for
# `kubectl exec deployment/rdma-webhook -- rdma-webhook certs status`.
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
