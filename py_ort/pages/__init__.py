"""Pages for people, as single files that need nothing but a browser: profiles, benchmarks, graphs.

template.py     puts a page together: style, data, script
*.html.j2       the pages; base.html.j2 is what they share

Their scripts come from web/src/report.
"""
