"""A mirror of the core: typed arrays in JavaScript."""

from py_ort.providers.provider import Provider

PROVIDER = Provider(
    "mirror",
    ("MirrorExecutionProvider",),
    order=5,
    elements={"float32": "float32"},
    device_names=("mirror",),
)
