"""Manifests for tests of the compiler that must not depend on the built kernels."""

from __future__ import annotations

import onnx

from py_ort.providers.manifest import Manifest

FLOATS = ["float32", "float16"]
ANY_ON_GPU = [*FLOATS, "int32", "uint32", "int64", "bool", "int8", "uint8"]
MICROSOFT = ("FusedMatMul", "SkipLayerNormalization")
WINDOWS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
_COMPUTES = (
    *(
        "Abs",
        "Ceil",
        "Floor",
        "Neg",
        "Relu",
        "Sigmoid",
        "Tanh",
        "Sqrt",
        "Exp",
        "Log",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
    ),
    *("Clip", "Add", "Sub", "Mul", "Div", "Pow", "Erf", "Gelu", "Softmax", "ReduceMean", "ReduceSum", "Gemm"),
    *("LayerNormalization", "Resize", "LRN", "Attention", *WINDOWS),
)
_MOVES = (
    "Reshape",
    "Transpose",
    "Concat",
    "Slice",
    "Squeeze",
    "Unsqueeze",
    "Cast",
    "Gather",
    "Split",
    "Expand",
    "Pad",
    "Where",
    "Identity",
)
NHWC = "com.ms.internal.nhwc"
COLUMNS = {("", "Resize"), ("", "Concat"), *((NHWC, name) for name in WINDOWS[:5])}


def manifests(
    *, matmul_bias: bool = True, chains: bool = False, columns: bool = False, integers: bool = False
) -> dict[str, Manifest]:
    """Return manifests of a small webgpu, a smaller webnn, and a wasm that runs every operator of ONNX.

    Args:
        matmul_bias: MatMul supports a bias, and a residual.
        chains: Both have ElementwiseChain.
        columns: Convolutions, pools, Resize and Concat on the GPU read and write columns.
        integers: wasm has com.microsoft's operators on integers; webgpu has MatMulNBits, FakeQuantize and
            DynamicFakeQuantize, too. Its products have epilogues of any length and accept integers, and its
            normalizations add up the parts of products.
    """
    ends = ["epilogue", "residual"]
    more = ["bias", *ends] if matmul_bias else ["epilogue"]
    gpu = [{"domain": "", "op_type": name, "types": [FLOATS]} for name in _COMPUTES]
    gpu += [{"domain": "", "op_type": name, "types": [ANY_ON_GPU]} for name in _MOVES]
    gpu += [{"domain": NHWC, "op_type": name, "types": [FLOATS]} for name in WINDOWS]
    gpu += [{"domain": "com.microsoft", "op_type": name, "types": [FLOATS]} for name in MICROSOFT]
    gpu.append({"domain": "", "op_type": "MatMul", "types": [FLOATS] * 4, "features": more})
    names = sorted({schema.name for schema in onnx.defs.get_all_schemas()} - {"MatMul"})
    wasm = [{"domain": "", "op_type": name, "types": []} for name in names]
    wasm += [{"domain": NHWC, "op_type": name, "types": [["float32"]]} for name in WINDOWS]
    wasm += [{"domain": "com.microsoft", "op_type": name, "types": [["float32"]]} for name in MICROSOFT]
    wasm.append({"domain": "", "op_type": "MatMul", "types": [["float32", "int32"]] * 4, "features": more})
    for each in (gpu, wasm):
        each.append({"domain": "", "op_type": "SimplifiedLayerNormalization", "types": [["float32"]]})
    wasm.append({"domain": "com.microsoft", "op_type": "MatMulNBits", "types": []})
    if chains:
        more = (
            "Elu",
            "Less",
            "Not",
            "And",
            *("Xor", "IsNaN", "IsInf", "Max", "Min", "Round", "Sign", "Mod", "PRelu", "Selu", "Celu", "Shrink"),
            *("Pow", "ThresholdedRelu", "Asinh", "Atan", "Tan", "Cosh", "Acosh"),
            *(f"Reduce{kind}" for kind in ("Max", "Min", "L1", "L2", "SumSquare", "LogSumExp")),
        )
        gpu += [{"domain": "", "op_type": name, "types": [ANY_ON_GPU]} for name in more]
    for each, types in ((gpu, ANY_ON_GPU), (wasm, ["float32", "int32", "int64", "bool"])) if chains else ():
        each.append({"domain": "com.ms.internal", "op_type": "ElementwiseChain", "types": [types]})
        each[-1]["features"] = ["perm"] if each is gpu else []
    for each, op_type in (
        (
            (wasm, "QLinearAdd"),
            (wasm, "QLinearMul"),
            (wasm, "QLinearSigmoid"),
            (wasm, "MatMulIntegerToFloat"),
            (gpu, "MatMulNBits"),
        )
        if integers
        else ()
    ):
        each.append({"domain": "com.microsoft", "op_type": op_type, "types": []})
        if op_type == "MatMulNBits":
            each[-1]["features"] = ["bytes", "epilogue", "gate", "norm", "residual"]
    for entry in (*gpu, *wasm):
        if entry["op_type"] in ("Conv", "ConvTranspose", "Gemm"):
            entry["features"] = ends
    if integers:
        wasm.append({"domain": "com.ms.internal", "op_type": "ByteTable", "types": []})
        own = ("FakeQuantize", "FakeQuantize16", "DynamicFakeQuantize")
        gpu += [{"domain": "com.ms.internal", "op_type": name, "types": [FLOATS]} for name in own]
    for entry in gpu if integers else ():
        if "epilogue" in entry.get("features", ()) or entry["op_type"] in ("Softmax", "LayerNormalization"):
            entry["features"] = [*entry.get("features", ()), "steps"]
        if (entry["domain"], entry["op_type"]) == (NHWC, "Conv"):
            entry["features"] = [*entry["features"], "bytes"]
        if entry["op_type"] in ("MatMul", "FusedMatMul"):
            entry["features"] = [*entry.get("features", ()), "perm"]
        if entry["op_type"] in ("MatMul", "LayerNormalization", "ElementwiseChain"):
            entry["features"] = [*entry.get("features", ()), "words"]
        if entry["op_type"] in ("MatMul", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
            entry["features"] = [*entry.get("features", ()), "parts"]
    for entry in gpu if columns else ():
        if (entry["domain"], entry["op_type"]) in COLUMNS:
            entry["features"] = [*entry.get("features", ()), "columns"]
    webnn = [{"domain": domain, "op_type": name, "types": [FLOATS]} for name in WINDOWS for domain in ("", NHWC)]
    webnn += [{"domain": "", "op_type": name, "types": [FLOATS]} for name in ("Transpose", "Add", "Relu")]
    entries = {"webgpu": gpu, "webnn": webnn, "wasm": wasm}
    return {provider: Manifest.of(provider, given) for provider, given in entries.items()}
