"""The JSON in messages: one type for each field. A test compares these types with web/src/page/json_fields.ts.

JSON is for open sets: options of providers, kernels of users, and a page's accounts of its work. All other fields of
messages are FlatBuffers (`schema/messages.fbs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

#: Detail of the GPU's times in a profiled run: each dispatch, or the same passes as in a run without a profile.
Timed = Literal["dispatches", "passes"]


class Opening(TypedDict, total=False):
    """Conditions for an adapter: `hardware` is "expected" or "required"; `timeoutMs` is in milliseconds."""

    hardware: str
    timeoutMs: float


class DeviceOptions(Opening, total=False):
    """OpenDevice.options: also the options given to the provider."""

    given: Mapping[str, str]


class DeviceDescription(TypedDict):
    """DeviceOpened.info: features by WebGPU's names, and the limits of this device."""

    vendor: str
    architecture: str
    device: str
    description: str
    software: bool
    features: list[str]
    limits: dict[str, float]


class SessionOptions(TypedDict, total=False):
    """CreateSession.options: options by provider, and the number of threads (0: as many as the machine offers).

    `tiles`: the tile of each product. With `trace` the browser's performance timeline contains the session's creation
    and runs. `scope`: origin of the plan, "" for this program; keys of weights are equal only within one origin.
    """

    providerOptions: Mapping[str, Mapping[str, str]]
    threads: int
    opening: Opening
    tiles: Mapping[str, str]
    trace: bool
    scope: str


class Counters(TypedDict):
    """Counters of a request; `walks` counts the core's walks through the plan."""

    pipelines: int
    buffers: int
    bind_groups: int
    dispatches: int
    submits: int
    uploads: int
    downloads: int
    suspensions: int
    walks: int


class CpuMeans(TypedDict):
    """The means of nodes on the CPU; `without_threads` is the reason for one thread where more were expected.

    `simd` is omitted if no node has loops that depend on it.
    """

    simd: NotRequired[str]
    threads: int
    without_threads: NotRequired[str]


class SessionInfo(TypedDict):
    """SessionCreated.info. A span of `timeline` is [name, "page" | "node" | "gpu", start, end, arguments]."""

    create_ms: float
    weights_ms: float
    compile_ms: float
    counters: Counters
    wasm: CpuMeans
    timeline: Sequence[Sequence[Any]]


class BoundOutput(TypedDict):
    """A GPU tensor to write an output into."""

    gpuId: int
    dtype: int
    dims: Sequence[int]


class RunOptions(TypedDict, total=False):
    """Run.options: tensors to write outputs into, the number of the capture, the detail of the profile."""

    bind: Mapping[str, BoundOutput]
    graphId: int
    profile: Timed


class DecoderNames(TypedDict, total=False):
    """Names of a decoder's inputs and outputs that differ from transformers' names; %d is the layer."""

    ids: str
    mask: str
    positions: str
    cachePositions: str
    lengths: str
    total: str
    logitsToKeep: str
    useCache: str
    logits: str
    pastKey: str
    pastValue: str
    presentKey: str
    presentValue: str


class GenerateOptions(TypedDict, total=False):
    """Generate.options; `reuse`: continue from the caches if the new prompt begins with the same tokens."""

    maxNewTokens: int
    minNewTokens: int
    contextLength: int
    eos: Sequence[int]
    stop: Sequence[Sequence[int]]
    sample: bool
    temperature: float
    topK: int
    topP: float
    repetitionPenalty: float
    numBeams: int
    lengthPenalty: float
    earlyStopping: bool | str
    numReturnSequences: int
    seed: int
    names: DecoderNames
    reuse: bool
    mask: Sequence[int]
    jsonVocabulary: Sequence[str]


class GenerateInfo(TypedDict):
    """Generated.info: the reason for each row's end ("eos", "stop", "length"), counts of tokens, and times.

    `reused` counts tokens found in caches. `scores` of the rows after a beam search are sums of log probabilities,
    divided according to `length_penalty`. `steps` counts runs of the model; `counters` are those of all runs,
    `last_step` those of the last run.
    """

    finished: Sequence[str]
    counts: Sequence[int]
    reused: int
    scores: NotRequired[Sequence[float]]
    prompt_ms: float
    decode_ms: float
    steps: int
    seed: int
    sampled_on: str
    counters: Counters
    last_step: Counters


class ProductTiling(TypedDict):
    """A product, its tile, and the names of all possible tiles."""

    product: str
    tile: str
    choices: Sequence[str]


class Dispatch(TypedDict):
    """A dispatch of a profiled run; times need timestamps, and tilings need a table of tiles."""

    kernel: str
    provider: str
    workgroups: Sequence[int]
    ms: NotRequired[float]
    start_ms: NotRequired[float]
    instance: NotRequired[int]
    node: NotRequired[str]
    tiling: NotRequired[ProductTiling]
    op_type: NotRequired[str]
    node_index: NotRequired[int]


class GpuTime(TypedDict):
    """GPU time of a run: of all passes, and from the start of the first pass to the end of the last."""

    passes: int
    ms: float
    span_ms: float


class RunInfo(TypedDict):
    """RunResult.info. A profile adds dispatches or `gpu`, and times by the worker's `performance.now()`."""

    run_ms: float
    compile_ms: NotRequired[float]
    replayed: bool
    segments: int
    counters: Counters
    profile: NotRequired[Sequence[Dispatch]]
    gpu: NotRequired[GpuTime]
    timeline: NotRequired[Sequence[Sequence[Any]]]
    received_ms: NotRequired[float]
    answered_ms: NotRequired[float]


class MemoryUse(TypedDict):
    """Bytes of constants, of constants shared with other sessions, of memory for values between nodes, and its peak."""

    weights: int
    shared: int
    arena: int
    peak: int


class SessionMemory(TypedDict):
    """Memory by provider."""

    wasm: MemoryUse
    webgpu: NotRequired[MemoryUse]


class CacheStats(TypedDict):
    """Buffers in a cache and their bytes; requests that the cache served, and other requests."""

    mode: str
    buffers: int
    bytes: int
    hits: int
    misses: int


class BufferCaches(TypedDict):
    """Caches by the purpose of their buffers."""

    storage: CacheStats
    uniform: CacheStats
    queryResolve: CacheStats
    default: CacheStats


class SessionStats(TypedDict):
    """Stats.json of a session: its recordings, bytes and own caches."""

    recordings: int
    weights_bytes: int
    device_id: int
    arena_bytes: int
    memory: SessionMemory
    buffer_caches: NotRequired[BufferCaches]


class MicrokernelStats(TypedDict):
    """Threads that run micro-kernels, and the number of kernels that they shared."""

    threads: int
    shared_kernels: int


class DeviceStats(TypedDict):
    """Tensors of a device that belong to no session, their bytes, and caches."""

    tensors: int
    tensor_bytes: int
    buffer_caches: BufferCaches


class PageStats(TypedDict):
    """Stats.json of a whole page: devices and sessions by number; the JSEP functions in which the core was suspended.

    `gpu_bytes` includes buffers in caches; pages without a core have no `wasm`.
    """

    counters: Counters
    heap_bytes: int
    wasm: NotRequired[MicrokernelStats]
    gpu_bytes: int
    devices: Mapping[str, DeviceStats]
    sessions: Mapping[str, SessionStats]
    suspending_imports: Sequence[str]


#: A size: a number, or a list of an operator and its operands (`py_ort/user_kernels/sizes.py`).
Tree = Any


class UserInput(TypedDict):
    """An input; expressions of sizes read the elements of a host input on the CPU."""

    name: str
    optional: bool
    host: bool


class UserOutput(TypedDict):
    """An output; `dtype` is a type, or the name of an input of the same type."""

    name: str
    dtype: str
    shape: Tree


class UserAttribute(TypedDict):
    """`kind` is "i", "f" or "s", of lists "is", "fs" or "ss"; an attribute without default (None) is required."""

    kind: str
    default: Any


class UserUniform(TypedDict):
    """A number that the shader receives at each run; `type` is "u32", "i32" or "f32"."""

    name: str
    type: str
    value: Tree


class UserConstant(TypedDict):
    """A number that is written into the shader."""

    name: str
    value: Tree


class UserDefinition(TypedDict):
    """A user's kernel: in a list in Plan.user_kernels, and JsepCreateKernel.user_kernel.

    `form` is "expression", "body" or "wgsl". `text` is WGSL; in expressions C is the computation's type,
    S its scalar and B a bool. `functions` are the user's own, `helpers` are called by the translation.
    """

    domain: str
    op: str
    inputs: Sequence[UserInput]
    outputs: Sequence[UserOutput]
    attributes: Mapping[str, UserAttribute]
    form: str
    text: str
    isBool: bool
    functions: str
    helpers: str
    uniforms: Sequence[UserUniform]
    constants: Sequence[UserConstant]
    threads: Tree
    workgroups: Sequence[Tree]
    workgroupSize: int
