"""Pages for people, as single files that need nothing but a browser: profiles, benchmarks, graphs.

template.py     puts a page together: style, data, script
*.html.j2       the pages; base.html.j2 is what they share
graph.py        a model as it was given and as it runs, as data for graph.html.j2

Their scripts come from web/src/report.
"""
