"""WebGL 2: a name so far."""

from py_ort.providers.provider import Provider

PROVIDER = Provider("webgl", ("WebGLExecutionProvider",), order=2, unavailable="py_ort has no WebGL kernels yet")
