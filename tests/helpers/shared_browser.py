"""The browser that tests share."""

from py_ort import BrowserOptions

#: Software WebGPU is on every machine: results do not depend on the machine that runs the tests.
BROWSER = BrowserOptions(webgpu="software", idle_timeout=3600)
