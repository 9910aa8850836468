"""onnxruntime-web's test runner on py_ort: the same modes, flags and test files, on our launchers and providers.

    python -m karma_compat [mode] [param] [flags]        or, in this folder: npm test -- [mode] [param] [flags]

From its arguments (`arguments`) come cases (`suite`), which py_ort.testing runs and `report` prints as mocha would.
"""
