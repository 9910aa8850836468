"""The optimized graph as an ONNX file (`optimized_model_filepath`, `py-ort passes --save`)."""
