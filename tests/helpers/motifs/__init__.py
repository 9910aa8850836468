"""Motifs: each holds what one pass looks for, and stands among random nodes on a value of a random graph."""

from motifs import attention, functions, placed, products, shapes

#: Seeds are indices into this table.
MOTIFS = {**shapes.MOTIFS, **functions.MOTIFS, **products.MOTIFS, **attention.MOTIFS, **placed.MOTIFS}

#: Passes without a motif, and the tests that cover them.
ELSEWHERE = {
    "behind_convolutions": "tests/unit/plan/test_source_form.py",
    "cache_writes": "tests/unit/passes/test_cache_writes.py",
    "counts": "tests/models/test_counted_launches.py",
    "growing_caches": "tests/unit/passes/test_growing_caches.py",
    "index_grids": "tests/unit/passes/test_index_grids.py",
    "packed_gates": "tests/unit/passes/test_packed_projections.py",
    "quantized_operators": "tests/models/test_operators_in_floats.py",
    "signed_bytes": "tests/unit/passes/test_signed_bytes.py",
    "wide_halves": "tests/unit/passes/test_wide_halves.py",
}
