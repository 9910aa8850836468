"""`py-ort export --check`: runs an exported file in the installed browsers, as a page would.

check.py    the runs, and the comparison
visitor.py  one browser: its jobs and results
report.py   a table, a page, JSON
"""
