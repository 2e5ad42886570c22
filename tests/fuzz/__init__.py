"""A fuzzer of our own over the real code: `make fuzz`, and a short run of it in `make test`."""
