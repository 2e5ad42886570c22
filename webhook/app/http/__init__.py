"""The answers: `/mutate`, `/preview`, health and metrics, each a plain ASGI callable or a page."""
