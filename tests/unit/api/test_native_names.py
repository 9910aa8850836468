"""Names of onnxruntime's native module, which only our stand-in for the module has."""

from __future__ import annotations

import enum
import inspect

import numpy as np
import pytest

import py_ort
from py_ort.exceptions import InvalidArgument, NotImplemented

native = pytest.importorskip("onnxruntime")
state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")


def _names(module):
    return sorted(n for n in dir(module) if n[0] != "_" and not inspect.ismodule(getattr(module, n)))


@pytest.fixture(scope="module")
def ours():
    theirs = {"onnxruntime": native, "onnxruntime.capi.onnxruntime_pybind11_state": state}
    with py_ort.install_as_onnxruntime():
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state

        assert onnxruntime is not theirs["onnxruntime"]
        yield {"onnxruntime": onnxruntime, "state": onnxruntime_pybind11_state}


@pytest.mark.parametrize("name", [n for n in _names(native) if n != "contextlib"])
def test_names_of_the_package(name, ours):
    assert name in vars(ours["onnxruntime"])


@pytest.mark.parametrize("name", _names(state))
def test_names_of_the_native_module(name, ours):
    found, theirs = getattr(ours["state"], name), getattr(state, name)
    if isinstance(theirs, type) and hasattr(theirs, "__members__"):
        assert {k: int(v) for k, v in found.__members__.items()} == {k: int(v) for k, v in theirs.__members__.items()}
    else:
        assert isinstance(found, type) == isinstance(theirs, type) or isinstance(found, enum.IntEnum)


def test_what_is_native_only_says_so(ours):
    module = ours["state"]
    cpu, cuda = (
        module.OrtMemoryInfo(name, module.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, module.OrtMemType.DEFAULT)
        for name in ("Cpu", "Cuda")
    )
    module.create_and_register_allocator(cpu, None)
    module.create_and_register_allocator_v2("CPUExecutionProvider", cpu, {}, module.OrtArenaCfg(0, -1, -1, -1))
    with pytest.raises(NotImplemented, match="no memory 'Cuda'"):
        module.create_and_register_allocator(cuda, None)
    with pytest.raises(RuntimeError, match="Unknown Provider Type: CUDAExecutionProvider"):
        module.create_and_register_allocator_v2("CUDAExecutionProvider", cpu, {}, None)
    with pytest.raises(NotImplemented, match="no streams"):
        module.OrtSyncStream()
    (device,) = ours["onnxruntime"].get_ep_devices()
    with pytest.raises(NotImplemented, match="no streams"):
        device.create_sync_stream()


def test_descriptions_of_memory_are_what_they_were_made_of(ours):
    def made(module):
        given = module.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        plain = module.OrtMemoryInfo("Cpu", given, 0, module.OrtMemType.DEFAULT)
        shared = module.OrtMemoryInfo.create_v2(
            "Test", module.OrtMemoryInfoDeviceType.GPU, 0x10DE, 1, module.OrtDeviceMemoryType.HOST_ACCESSIBLE, 64, given
        )
        fields = ("name", "allocator_type", "device_id", "mem_type", "device_vendor_id", "device_mem_type")
        arenas = (module.OrtArenaCfg(8, 0, 1, 2), module.OrtArenaCfg({"max_mem": 5, "initial_chunk_size_bytes": 3}))
        return [
            *(
                [int(v) if hasattr(v, "value") else v for v in (getattr(info, f) for f in fields)]
                for info in (plain, shared)
            ),
            *({f: getattr(arena, f) for f in dir(state.OrtArenaCfg) if f[0] != "_"} for arena in arenas),
        ]

    assert made(ours["state"]) == made(state)
    with pytest.raises(InvalidArgument, match="'nope'"):
        ours["state"].OrtArenaCfg({"nope": 1})


def test_vectors_of_values(ours):
    vector = ours["state"].OrtValueVector()
    x, flags = np.arange(3, dtype=np.float32), np.array([True, False])
    vector.push_back(py_ort.OrtValue.ortvalue_from_numpy(x))
    vector.push_back(flags.view(np.uint8).__dlpack__(), True)
    assert len(vector) == 2 and vector.bool_tensor_indices() == [1] and vector.element_type_at(1) == 9
    vector[1].update_inplace(~flags)
    assert list(flags) == [False, True], "the memory is shared, and may be written"
    again = vector.to_dlpacks(py_ort.OrtValue.from_dlpack)
    np.testing.assert_array_equal(again[0].numpy(), x)
    assert again[0].data_ptr() == x.ctypes.data, "no copy"
    np.testing.assert_array_equal(again[1].numpy(), [0, 1])
    assert "dltensor" in repr(vector.to_dlpacks(None)[0])


def test_what_a_capsule_holds(ours):
    # Native 1.32 has removed it.
    for module in (ours["state"], *([state] if hasattr(state, "is_dlpack_uint8_tensor") else [])):
        for array, expected in ((np.ones(2, np.uint8), True), (np.ones(2, np.int8), False), (np.ones((0, 2)), False)):
            assert module.is_dlpack_uint8_tensor(array.__dlpack__()) is expected
    capsule = np.ones(2).__dlpack__()
    np.testing.assert_array_equal(ours["state"].OrtValue.from_dlpack(capsule, False).numpy(), [1, 1])
    for nothing in (capsule, 3):
        with pytest.raises(InvalidArgument, match="no DLPack capsule"):
            ours["state"].is_dlpack_uint8_tensor(nothing)


def test_the_cpu_is_the_one_device_that_is_listed(ours):
    def seen(package, module):
        (device,) = package.get_ep_devices()
        (hardware,) = module.get_hardware_devices()
        options = package.SessionOptions()
        options.add_provider_for_devices([device], {})
        told = module.get_hardware_device_ep_incompatibility_details(device.ep_name, hardware)
        compatible = module.get_model_compatibility_for_ep_devices([device], "anything")
        names = set(dir(device)) | set(dir(hardware))
        public = {name for name in names if name[0] != "_"}
        return public, device.ep_name, int(hardware.type), told, int(compatible), options.has_providers()

    assert seen(ours["onnxruntime"], ours["state"]) == seen(native, state)


COMPATIBILITY = {
    "there": (b"r\x1f\n\x1aep_compatibility_info.TestEP\x12\x01v", "TestEP"),
    "of another": (b"r\x1f\n\x1aep_compatibility_info.TestEP\x12\x01v", "OtherEP"),
    "no model": (b"this is none", "TestEP"),
    "nothing": (b"", "TestEP"),
    "of nobody": (b"\x08\x08", ""),
}


@pytest.mark.parametrize("case", COMPATIBILITY)
def test_what_a_model_says_of_compiled_parts(case, ours, tmp_path):
    data, provider = COMPATIBILITY[case]
    path = tmp_path / "model.onnx"
    path.write_bytes(data)

    def asked(module):
        found = []
        for ask, model in (("_bytes", data), ("", str(path)), ("", str(path) + ".none")):
            try:
                found.append(getattr(module, f"get_compatibility_info_from_model{ask}")(model, provider))
            except RuntimeError:
                found.append(RuntimeError)
        return found

    assert asked(ours["state"]) == asked(state)


@pytest.mark.parametrize("arguments", [([], "info"), (["a device"], None)])
def test_what_cannot_be_asked_of_devices(arguments, ours):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        state.get_model_compatibility_for_ep_devices(*arguments)
    with pytest.raises(theirs.type):
        ours["state"].get_model_compatibility_for_ep_devices(*arguments)
