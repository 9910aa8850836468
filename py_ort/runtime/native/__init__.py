"""Objects beneath onnxruntime's classes, for code that uses them: native sessions, devices and memory."""
