"""The names of what runs models in a page, without an import."""

#: py_ort's own.
OURS = "py_ort"
#: The one to compare with.
PEER = "onnxruntime-web"
#: Values of `engine=`.
ENGINES = (OURS, PEER, f"{PEER}:jsep")
