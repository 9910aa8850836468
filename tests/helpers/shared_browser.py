"""The browser that tests share."""

from py_ort import BrowserOptions

#: Software WebGPU is on every machine, so results do not depend on where the tests run.
BROWSER = BrowserOptions(webgpu="software", idle_timeout=3600)
