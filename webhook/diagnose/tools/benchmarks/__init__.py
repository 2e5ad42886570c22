"""Readers of what benchmarks print: one file per program.

`read_output` reads a whole text, in which several programs and runs may follow each other or, where
two processes share a terminal, be mixed.
"""
