"""The compiler's graphs (onnx-ir): looked at, changed, and their types and sizes inferred."""
