"""Below HTTP: accepting connections, the memory they may use, and bounds on requests.

These classes extend uvicorn's and uvloop's, also private ones, which is why both versions are
exact. `accept` does the handshake, `connection` reads requests, `budget` bounds memory, and
`process` sets up the operating system. Nothing here knows a path or a pod. Start with `accept`.
"""
