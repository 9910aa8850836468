"""Flags, preferences and hints of browsers with WebGPU."""

from py_ort.providers.needs import Needs

SOFTWARE = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
NEEDS = Needs(
    flags={
        # If Vulkan's extension zeroes workgroup memory, SwiftShader makes a store for each element, and compiles for
        # seconds; without it Dawn writes a loop.
        "software": (
            *SOFTWARE,
            "--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension",
        ),
        "hardware": ("--enable-unsafe-webgpu", "--ignore-gpu-blocklist"),
        # Headless Chromium on Linux reaches the GPU through Vulkan only.
        "hardware linux": (
            "--enable-features=Vulkan",
            "--use-angle=vulkan",
            "--disable-vulkan-surface",
            "--disable-gpu-sandbox",
        ),
    },
    preferences=("dom.webgpu.enabled", "gfx.webgpu.ignore-blocklist"),
    hints={
        "given": f"WebGPU switched on in that browser (of a Chromium without a GPU: {' '.join(SOFTWARE)})",
        "hardware": "a GPU and its driver; or webgpu='software'",
        "firefox": "a Vulkan driver for Firefox (mesa-vulkan-drivers has one for the CPU)",
        "qtwebengine": "another browser, QtWebEngine is built without WebGPU",
        "webkit": "another browser, WebKitGTK has no WebGPU",
        "": "a software adapter: BrowserOptions(webgpu='software') or PY_ORT_WEBGPU=software, "
        f"which starts Chromium with {' '.join(SOFTWARE)}",
    },
    features={"float16": "shader-f16"},
)
