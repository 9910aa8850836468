"""Static pages timed as visitors see them: from navigation to a model's first outputs."""

from py_ort.bench.in_pages.measure import PageRow as PageRow
from py_ort.bench.in_pages.measure import measure_pages as measure_pages
from py_ort.bench.in_pages.page_table import page_table as page_table
