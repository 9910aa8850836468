"""The operators, one module per family (`py_ort.ir.operators` finds them)."""
