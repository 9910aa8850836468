"""Operators that take their neighbours in: constants into weights, functions into products."""
