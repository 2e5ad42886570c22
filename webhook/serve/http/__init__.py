"""The HTTP endpoints: `/mutate`, `/preview`, health and metrics, each an ASGI callable."""
