"""One form of each operator, whatever the model's opset: what passes and kernels see."""
