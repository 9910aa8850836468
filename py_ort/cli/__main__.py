"""`python -m py_ort.cli`."""

from py_ort.cli import main

main()
