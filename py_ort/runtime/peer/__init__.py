"""onnxruntime-web in our pages: the other engine of sessions, conformance and the benchmark."""
