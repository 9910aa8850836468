"""WebNN: a name so far."""

from py_ort.providers.provider import Provider

PROVIDER = Provider("webnn", ("WebNNExecutionProvider",), order=1, unavailable="py_ort has no WebNN backend yet")
