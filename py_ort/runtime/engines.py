"""Names of the engines that run models in a page; importing it imports nothing else."""

#: py_ort's own engine.
OURS = "py_ort"
#: The engine to compare with.
PEER = "onnxruntime-web"
#: Values of `engine=`.
ENGINES = (OURS, PEER, f"{PEER}:jsep")
