"""`py-ort export --check`: an exported file in the browsers that are installed, as a page would run it.

check.py    what is run and what it is compared with
visitor.py  one browser: its jobs, and what comes back
report.py   a table, a page, JSON
"""
