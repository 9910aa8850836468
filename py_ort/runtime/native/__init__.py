"""What code written for onnxruntime reaches beneath its classes: `_sess`, native bindings and devices."""
