"""Options of the WebGPU provider, by onnxruntime's names."""

from py_ort.providers.option import Enumeration, Option

_LAYOUTS = Enumeration("Layout", {"NCHW": "", "NHWC": ""})
_CACHE_MODES = Enumeration(
    "BufferCacheMode",
    {
        "disabled": "it is destroyed at once",
        "lazyRelease": "it is destroyed at the end of the next run",
        "simple": "it is kept for a request of exactly its size",
        "bucket": "sizes are rounded up to buckets, and it is kept for a request of its bucket",
    },
    constant="BUFFER_CACHE",
    meaning="Cache modes: what becomes of a GPU buffer that is no longer needed",
)
_VALIDATION_MODES = Enumeration(
    "ValidationMode",
    {
        "disabled": "GPU errors are logged, and fail nothing",
        "wgpuOnly": "an error that WebGPU itself finds fails the run",
        "basic": "besides, dispatches are checked when they are resolved",
        "full": "besides, all work of a run is in error scopes, so that it gets no other run's errors",
    },
    constant="VALIDATION",
)
_POWER = Enumeration("PowerPreference", {"low-power": "", "high-performance": ""}, constant="POWER")

#: The default of uniforms is onnxruntime's since its WebGPU provider was completed; earlier it was lazyRelease.
OPTIONS = (
    Option("deviceId", "number", "the device: 0 is the default one, another is shared by the sessions that name it"),
    Option(
        *(
            "preferredLayout",
            "choice",
            "layout of convolutions, pools and the like; NHWC by name counts at every level",
        ),
        *("NHWC", _LAYOUTS),
        compiles="preferred_layout",
    ),
    Option("enableGraphCapture", "flag", "record the dispatches of a run, and replay them in the next"),
    Option("storageBufferCacheMode", "choice", "reuse of tensors' buffers", "bucket", _CACHE_MODES),
    Option("uniformBufferCacheMode", "choice", "reuse of the buffers of shaders' numbers", "simple", _CACHE_MODES),
    Option("queryResolveBufferCacheMode", "choice", "reuse of the buffers of timestamps", "disabled", _CACHE_MODES),
    Option("defaultBufferCacheMode", "choice", "reuse of all other buffers, as of downloads", "disabled", _CACHE_MODES),
    Option(
        *("forceCpuNodeNames", "text", "names of nodes that run on the CPU: a list, or one on each line", ""),
        compiles="force_cpu_node_names",
    ),
    Option("validationMode", "choice", "how errors on the GPU are found", "basic", _VALIDATION_MODES),
    Option("powerPreference", "choice", "the adapter to open the device with", "", _POWER),
    Option("forceFallbackAdapter", "flag", "open the device with a software adapter"),
    Option("subgroupMatrix", "flag", "an experiment, not onnxruntime's: products of float16 by subgroup matrices"),
    Option("preserveDevice", "flag", "a device above 0 outlives its last session"),
)
