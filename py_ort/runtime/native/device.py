"""`OrtDevice` with the arguments of onnxruntime's native class."""

from __future__ import annotations

from py_ort.runtime.values.ort_device import CPU_TYPE, DEVICE, DML, FPGA, GPU, HEAP, NPU, OrtDevice

_BY_NUMBER = {CPU_TYPE: HEAP, GPU: DEVICE, FPGA: "npu", NPU: "npu", DML: "dml"}
_BY_VENDOR: dict[tuple[int, ...], str] = {(GPU, 0x10DE): "cuda", (GPU, 0x1414): "dml", (NPU, 0x19E5): "cann"}


class NativeDevice(OrtDevice):
    """A device by numbers.

    Args:
        kind: A result of the static methods.
        memory: A kind of memory; not used.
        numbers: Numbers of the vendor (optional) and the device.
    """

    def __init__(self, kind: int, memory: int, *numbers: int) -> None:
        *vendor, number = numbers
        super().__init__(_BY_VENDOR.get((kind, *vendor), _BY_NUMBER[kind]), number, *vendor)


def _number(kind: int) -> staticmethod[[], int]:
    def number() -> int:
        """Return the number of this kind."""
        return kind

    return staticmethod(number)


for _name, _kind in (
    *((HEAP, CPU_TYPE), ("cuda", GPU), ("gpu", GPU), (DEVICE, GPU), ("fpga", FPGA), ("npu", NPU), ("cann", NPU)),
    *(("dml", DML), ("default_memory", 0)),
):
    setattr(NativeDevice, _name, _number(_kind))
