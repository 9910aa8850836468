"""Operators that take their neighbors in: constants into weights, functions into products."""
