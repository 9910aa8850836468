"""What is JSON in messages: one type for each field. A test compares them with those of web/src/page/json_fields.ts.

They are open by nature: options that a user's provider names, kernels that users write, and what a page tells of
itself, which grows with what there is to tell. All else in a message is FlatBuffers (`schema/messages.fbs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

#: What a profiled run times on the GPU: each dispatch, or the passes that a run without a profile has, too.
Timed = Literal["dispatches", "passes"]


class Opening(TypedDict, total=False):
    """How to look for an adapter: `hardware` is "expected" or "required"; timeoutMs: in milliseconds."""

    hardware: str
    timeoutMs: float


class DeviceOptions(Opening, total=False):
    """OpenDevice.options: besides, the options given to the provider."""

    given: Mapping[str, str]


class DeviceDescription(TypedDict):
    """DeviceOpened.info: features by WebGPU's names, limits as they are with this device."""

    vendor: str
    architecture: str
    device: str
    description: str
    software: bool
    features: list[str]
    limits: dict[str, float]


class SessionOptions(TypedDict, total=False):
    """CreateSession.options: options by provider, and how many threads (0: as many as there are).

    `tiles`: those that products take, by product. With `trace` its making and its runs are in the browser's performance
    timeline. `scope`: where the plan is from, "" for here: only there its weights' keys mean the same.
    """

    providerOptions: Mapping[str, Mapping[str, str]]
    threads: int
    opening: Opening
    tiles: Mapping[str, str]
    trace: bool
    scope: str


class Counters(TypedDict):
    """What a request made and did; `walks` are of the plan, by the core."""

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
    """With what nodes run on the CPU, and why on one thread only, although there should be more.

    `simd` is left out where no node has loops that differ by it.
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
    """Run.options: outputs in tensors that there are, which capture a run is of, what to profile."""

    bind: Mapping[str, BoundOutput]
    graphId: int
    profile: Timed


class DecoderNames(TypedDict, total=False):
    """What a decoder calls its inputs and outputs, where these are not transformers' names; %d is the layer."""

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
    """Generate.options; `reuse`: go on from what the caches hold, where prompts begin alike."""

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
    """Generated.info: why each row ended ("eos", "stop", "length") and its new tokens; tokens found in caches; times.

    `scores` are those of the rows after a search by beams: sums of logarithmic probabilities, divided as
    `length_penalty` says. `steps` are runs of the model; `counters` of all of them, `last_step` of the last one.
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
    """A product, its tile, and the names of all that it could take."""

    product: str
    tile: str
    choices: Sequence[str]


class Dispatch(TypedDict):
    """A dispatch of a profiled run; without timestamps there are no times, and without a table no tilings."""

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
    """What the GPU took for a run: all passes, and from the first one's begin to the last one's end."""

    passes: int
    ms: float
    span_ms: float


class RunInfo(TypedDict):
    """RunResult.info. With a profile, also dispatches or `gpu`, and all times on the worker's `performance.now()`."""

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
    """In bytes: constants, those of them that others hold as well, room for what is between nodes, the most needed."""

    weights: int
    shared: int
    arena: int
    peak: int


class SessionMemory(TypedDict):
    """By provider."""

    wasm: MemoryUse
    webgpu: NotRequired[MemoryUse]


class CacheStats(TypedDict):
    """Buffers that wait for a use and their bytes; requests that such a buffer served, and others."""

    mode: str
    buffers: int
    bytes: int
    hits: int
    misses: int


class BufferCaches(TypedDict):
    """By what the buffers are for."""

    storage: CacheStats
    uniform: CacheStats
    queryResolve: CacheStats
    default: CacheStats


class SessionStats(TypedDict):
    """Stats.json of a session: runs that it has recorded; bytes; caches of its own."""

    recordings: int
    weights_bytes: int
    device_id: int
    arena_bytes: int
    memory: SessionMemory
    buffer_caches: NotRequired[BufferCaches]


class MicrokernelStats(TypedDict):
    """Threads that run micro-kernels, and how many of these they shared."""

    threads: int
    shared_kernels: int


class DeviceStats(TypedDict):
    """What belongs to no session: tensors, their bytes, caches."""

    tensors: int
    tensor_bytes: int
    buffer_caches: BufferCaches


class PageStats(TypedDict):
    """Stats.json of a whole page: devices and sessions by number; the JSEP functions in which the core was suspended.

    `gpu_bytes` includes what waits in caches; `wasm` is there with a core.
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
    """An input; the elements of one on the host are read on the CPU, by the language of sizes."""

    name: str
    optional: bool
    host: bool


class UserOutput(TypedDict):
    """An output; `dtype` is one, or the name of an input that has the same."""

    name: str
    dtype: str
    shape: Tree


class UserAttribute(TypedDict):
    """`kind`: "i", "f", "s" or, of lists, "is", "fs", "ss"; without a default (None) it must be given."""

    kind: str
    default: Any


class UserUniform(TypedDict):
    """A number that the shader is given at each run; `type`: "u32", "i32" or "f32"."""

    name: str
    type: str
    value: Tree


class UserConstant(TypedDict):
    """A number that is written into the shader."""

    name: str
    value: Tree


class UserDefinition(TypedDict):
    """A user's kernel: in a list in Plan.user_kernels, and JsepCreateKernel.user_kernel.

    `form`: "expression", "body" or "wgsl"; `text` is WGSL, of an expression in the aliases C (computed in), S (its
    scalar) and B (a bool); `functions` are the user's own, `helpers` those that the translation calls.
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
