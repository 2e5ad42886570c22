"""The fuzzer for the real code: `make fuzz`, and a short run in `make test`."""
