"""Ends of a generation: by tokens, by the caller, by errors; and the session continues to work."""

from __future__ import annotations

import asyncio
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from constant_logits import dotted
from language_models import VOCABULARY, check_greedy, language_model, native_greedy
from onnx import TensorProto, helper, numpy_helper
from text_form import parse
from waiting import wait_until

import py_ort
from py_ort import InferenceSession
from py_ort.exceptions import (
    InvalidArgument,
    NotImplemented,
    OutOfMemory,
    PyOrtError,
    RuntimeException,
    Timeout,
    WrongType,
)

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
LONG = 4000
NO_TOKEN = [(np.nan, "NaN"), (-np.inf, "no logit that is a finite"), (np.inf, "no logit that is a finite")]


@pytest.fixture
def kind():
    return "grouped"


def test_tokens_that_end_it(session, model):
    wanted = native_greedy(model, PROMPT, 12)
    end = wanted[4]
    first = wanted.index(end) + 1
    generation = session.generate(PROMPT, max_new_tokens=LONG, eos_token_id=[VOCABULARY - 1, end])
    assert (generation.result(), generation.finish_reason) == (wanted[:first], "eos")
    generation = session.generate(PROMPT, max_new_tokens=LONG, stop=[[99], wanted[5:8]])
    assert (generation.result(), generation.finish_reason) == (wanted[:8], "stop")
    # Steps that were ahead are of no use, and do no harm.
    check_greedy(session, model, [*PROMPT, *wanted[:8], 1], 3)


def test_rows_end_for_themselves(session, model):
    prompts = [PROMPT, [11, 12, 13]]
    one, other = (native_greedy(model, prompt, 8) for prompt in prompts)
    end = next(token for token in one if token not in other)
    generation = session.generate(prompts, max_new_tokens=8, eos_token_id=end)
    assert generation.result() == [one[: one.index(end) + 1], other]
    assert generation.finish_reason == ["eos", "length"]


def test_no_end_before_so_many_tokens(session, model):
    wanted = native_greedy(model, PROMPT, 8)
    found = session.generate(PROMPT, max_new_tokens=8, eos_token_id=wanted[0], min_new_tokens=3).result()
    assert len(found) > 3 and wanted[0] not in found[:3]


def test_an_end_that_the_model_has_no_logits_for(session, model):
    """It bars no token: not that of another row that would be there."""
    wanted = native_greedy(model, PROMPT, 3)
    end = VOCABULARY + wanted[0]
    generation = session.generate([PROMPT, PROMPT], max_new_tokens=3, eos_token_id=end, min_new_tokens=3)
    assert generation.result() == [wanted, wanted]


def spoiled(model: onnx.ModelProto, token: int, value: float) -> bytes:
    """The same with `value` added to all logits after a token."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    column = np.where(np.arange(VOCABULARY)[:, None] == token, value, 0).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(column, "spoil"))
    graph.node[-1].output[0] = "raw"
    graph.node.append(helper.make_node("Gather", ["spoil", "input_ids"], ["spoiled"]))
    graph.node.append(helper.make_node("Add", ["raw", "spoiled"], ["logits"]))
    return changed.SerializeToString()


@pytest.mark.parametrize("sample", [{}, {"do_sample": True, "seed": 3, "top_k": 7, "top_p": 0.9}], ids=["", "sample"])
@pytest.mark.parametrize(("value", "why"), NO_TOKEN)
def test_logits_that_give_no_token(model, provider, new_session, sample, value, why):
    if value == np.inf and not sample:
        pytest.skip("the first of those that are infinite is the likeliest")
    whole = new_session(model, providers=[provider])
    wanted = whole.generate(PROMPT, max_new_tokens=9, **sample).result()
    end = next(i for i, token in enumerate(wanted) if token not in [*PROMPT, *wanted[:i]] and i > 1)
    session = new_session(spoiled(model, wanted[end], value), providers=[provider])
    generation = session.generate(PROMPT, max_new_tokens=LONG, **sample)
    tokens = []
    with pytest.raises(RuntimeException, match=f"generate: step {end + 2} has .*{why}"):
        for token in generation:
            tokens.append(token)
    assert tokens == wanted[: end + 1]
    # Rows that have ended may break, and errors name those that break besides them.
    both = session.generate([PROMPT, PROMPT[:3]], max_new_tokens=end + 1, eos_token_id=wanted[end], **sample)
    assert both.result()[0] == wanted[: end + 1]
    if not sample:  # each row draws separately
        with pytest.raises(RuntimeException, match=f"step {end + 2}, row 1, has"):
            session.generate([PROMPT[:1], PROMPT], max_new_tokens=end + 4).result()
    # A session continues to work.
    assert session.generate(PROMPT, max_new_tokens=end, **sample).result() == wanted[:end]


def test_cancelled(session, model):
    generation = session.generate(PROMPT, max_new_tokens=LONG)
    begun = [next(generation) for _ in range(3)]
    generation.cancel()
    assert generation.result() == begun == native_greedy(model, PROMPT, 3)
    assert generation.finish_reason == "cancelled"
    with pytest.raises(PyOrtError, match="cancelled"):
        _ = generation.info
    assert check_greedy(session, model, PROMPT, 6).info["reused"] == len(PROMPT) - 1


def test_nobody_has_it_any_more(session, model):
    for _ in session.generate(PROMPT, max_new_tokens=LONG):
        break
    check_greedy(session, model, PROMPT, 3)


def test_nobody_has_the_session_any_more(provider, model):
    """It stays as long as the generation continues."""

    def generation():
        session = InferenceSession(model.SerializeToString(), providers=[provider])
        return session.generate(PROMPT, max_new_tokens=6), weakref.ref(session)

    generating, session = generation()
    assert generating.result() == native_greedy(model, PROMPT, 6)
    wait_until(lambda: session() is None)  # the thread that told the end may hold it for a moment
    for over in (False, True):
        generating, session = generation()
        wait_until(lambda: generating._future.done() or not over)  # noqa: B023
        generating.cancel()
        wait_until(lambda: session() is None)  # noqa: B023


def test_too_long(session, model):
    with pytest.raises(Timeout):
        session.generate(PROMPT, max_new_tokens=LONG, timeout=0.2).result()
    check_greedy(session, model, PROMPT, 3)


def test_more_tokens_than_there_is_memory_for(model, new_session):
    session = new_session(model, providers=["webgpu"])
    with pytest.raises(OutOfMemory, match=r"caches of 1000000008 tokens.* give a smaller maxNewTokens"):
        session.generate(PROMPT, max_new_tokens=10**9).result()
    check_greedy(session, model, PROMPT, 3)


def test_nothing_is_left_of_caches_that_there_is_no_memory_for(new_session):
    """The first ones were made when a larger one could not be."""
    key, value = "float[1,1,1048576,4]", "float[1,1024,1048576,4]"  # 16 MiB and 16 GiB
    text = f"""g (int64[batch,rows] input_ids, {key} past_key_values_0_key, {value} past_key_values_0_value)
        => (float[batch,rows,{VOCABULARY}] logits, {key} present_0_key, {value} present_0_value) {{
        logits = Gather(table, input_ids)
        present_0_key = Neg(past_key_values_0_key)  present_0_value = Neg(past_key_values_0_value) }}"""
    model = parse(text, {"table": np.eye(VOCABULARY, dtype=np.float32)})
    session = new_session(dotted(model), providers=["webgpu"])
    before = session.stats()["page"]["devices"]["0"]["tensors"]
    with pytest.raises(OutOfMemory):
        session.generate(PROMPT, max_new_tokens=3).result()
    assert session.stats()["page"]["devices"]["0"]["tensors"] == before


def test_what_failed_is_told_each_time(session):
    generation = session.generate(PROMPT, max_new_tokens=LONG, timeout=0.2)
    for _ in range(2):
        with pytest.raises(Timeout):
            generation.result()
    assert len(generation.tokens) < LONG


def test_several_threads_wait_for_one(session, model):
    generation = session.generate(PROMPT, max_new_tokens=6)
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(generation.result) for _ in range(3)]
        for one in waiting:
            one.result(timeout=30)
    assert generation.result() == native_greedy(model, PROMPT, 6)


def test_an_error_on_the_way(new_session):
    """A place past the last one of the model's table."""
    model = language_model("growing")
    for weight in model.graph.initializer:
        if weight.name == "places":
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight)[:12], "places"))
    session = new_session(model, providers=["wasm"])
    generation = session.generate(PROMPT, max_new_tokens=20)
    with pytest.raises(PyOrtError, match=r"Gather|indices|out of"):
        generation.result()
    assert generation.tokens == native_greedy(model, PROMPT, 5)
    check_greedy(session, model, PROMPT, 4)


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"max_new_token": 3}, WrongType, "max_new_tokens"),
        ({"max_new_tokens": 0}, InvalidArgument, "maxNewTokens"),
        ({"max_new_tokens": 2.5}, WrongType, "max_new_tokens"),
        ({"temperature": 0}, InvalidArgument, "temperature"),
        ({"top_p": 1.5}, InvalidArgument, "topP"),
        ({"seed": -1}, InvalidArgument, "seed"),
        ({"stop": [[]]}, InvalidArgument, "stop"),
        ({"eos_token_id": "end"}, WrongType, "eos_token_id"),
        ({"eos_token_id": "2"}, WrongType, "eos_token_id"),
        ({"eos_token_id": [2.5]}, WrongType, "eos_token_id"),
        ({"stop": "12"}, WrongType, "stop"),
        ({"stop": [[1.5]]}, WrongType, "stop"),
        ({"do_sample": "no"}, WrongType, "do_sample"),
        ({"temperature": float("nan")}, InvalidArgument, "temperature"),
        ({"top_p": float("nan")}, InvalidArgument, "top_p"),
        ({"repetition_penalty": float("inf")}, InvalidArgument, "repetition_penalty"),
        ({"names": {"id": "words"}}, InvalidArgument, "'ids'"),
        ({"names": {"ids": 5}}, WrongType, "names"),
        ({"temperature": "1"}, WrongType, "temperature"),
        ({"num_beams": 10**6}, InvalidArgument, "at most 65535 rows, not 1000000: .* num_beams"),
        ({"num_return_sequences": 2**60, "do_sample": True}, InvalidArgument, "at most 65535 rows"),
        ({"timeout": "soon"}, WrongType, "timeout"),
        ({"timeout": float("nan")}, InvalidArgument, "timeout"),
    ],
    ids=str,
)
def test_wrong_settings(on_wasm, settings, error, says):
    with pytest.raises(error, match=says):
        on_wasm.generate(PROMPT, **settings).result()
    assert len(on_wasm.generate(PROMPT, max_new_tokens=2).result()) == 2


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ([], InvalidArgument),
        ([1.5], WrongType),
        ([-1], InvalidArgument),
        ([VOCABULARY], PyOrtError),
        ("a", WrongType),
        (np.array(5), WrongType),
        ([1, [2, 3]], WrongType),
    ],
    ids=str,
)
def test_wrong_prompts(on_wasm, prompt, error):
    with pytest.raises(error, match="prompt is a list of tokens" if error is WrongType else None):
        on_wasm.generate(prompt, max_new_tokens=2).result()


def test_logits_of_the_last_place_only(session, model, provider, new_session):
    """With rows padded at the end: the shorter ones' last tokens have none."""
    last = next(node for node in model.graph.node if node.output[0] == "logits")
    bounds = {"from": [-1], "to": [2**31 - 1], "along": [1]}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(value), n) for n, value in bounds.items())
    cut = helper.make_node("Slice", [last.input[0], *bounds], ["last_place"])
    model.graph.node.insert(len(model.graph.node) - 1, cut)
    last.input[0] = "last_place"
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 1, VOCABULARY]))
    short = new_session(model, providers=[provider])
    with pytest.raises(NotImplemented, match=r"unequal length.* last 1 of 8 places"):
        short.generate([PROMPT, PROMPT[:3]], max_new_tokens=3).result()
    both = [PROMPT, PROMPT[::-1]]
    assert short.generate(both, max_new_tokens=3).result() == session.generate(both, max_new_tokens=3).result()


def _without_caches(model: onnx.ModelProto) -> str:
    del model.graph.input[3:], model.graph.output[1:]
    for node in list(model.graph.node):
        if node.op_type == "Concat":
            node.input[0] = node.input[1]
        if node.op_type == "Identity":
            model.graph.node.remove(node)
    return "no caches"


def _of_images(model: onnx.ModelProto) -> str:
    for values in (model.graph.input, model.graph.output):
        values.append(helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3]))
    return r'"pixel_values" \(float32\[\?,3\]\)'


def _without_one_output(model: onnx.ModelProto) -> str:
    del model.graph.output[2]
    return r'"past_key_values.0.value"'


def _odd_mask(model: onnx.ModelProto) -> str:
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT16
    return r'"attention_mask" is int16'


@pytest.mark.parametrize("change", [_without_caches, _of_images, _without_one_output, _odd_mask])
def test_what_is_no_decoder(new_session, change):
    model = language_model("growing")
    with pytest.raises(NotImplemented, match=change(model)):
        new_session(model, providers=["wasm"]).generate(PROMPT).result()


def test_names_of_ones_own(new_session):
    model = language_model("growing")
    wanted = native_greedy(model, PROMPT, 3)
    text = model.SerializeToString()
    own = {b"input_ids": b"words_in_", b"past_key_values.": b"caches_of_layer.", b"present.": b"becomes."}
    for old, new in own.items():  # of the same length
        text = text.replace(old, new)
    session = new_session(text, providers=["wasm"])
    with pytest.raises(NotImplemented, match=r'"words_in_".*names'):
        session.generate(PROMPT).result()
    caches = {"past": "caches_of_layer", "present": "becomes"}
    names = {f"{when}{kind}": f"{name}.%d.{kind.lower()}" for when, name in caches.items() for kind in ("Key", "Value")}
    names["ids"] = "words_in_"
    assert session.generate(PROMPT, max_new_tokens=3, names=names).result() == wanted


def test_asyncio(provider, model):
    async def main():
        wanted = native_greedy(model, PROMPT, 6)
        source = model.SerializeToString()
        async with await py_ort.AsyncInferenceSession.create(source, providers=[provider]) as session:
            found = [token async for token in await session.generate(PROMPT, max_new_tokens=6)]
            assert found == wanted
            generation = await session.generate([PROMPT], max_new_tokens=6)
            assert await generation.result() == [wanted]
            generation = await session.generate(PROMPT, max_new_tokens=6)
            await asyncio.wait_for(asyncio.gather(*(generation.result() for _ in range(3))), 30)
            assert await generation.result() == wanted
            async with await session.generate(PROMPT, max_new_tokens=LONG) as long:
                assert await anext(long) == wanted[0]
            assert long.finish_reason == "cancelled"
            generation = await session.generate(PROMPT, max_new_tokens=LONG)
            assert await anext(generation) == wanted[0]
            waiting = asyncio.ensure_future(generation.result())
            await asyncio.sleep(0)  # it begins to wait
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await (await session.generate(PROMPT, max_new_tokens=2)).result() == wanted[:2]

    asyncio.run(main())


def test_interrupted_is_not_swallowed(session, monkeypatch):
    generation = session.generate(PROMPT, max_new_tokens=LONG)
    next(generation)

    class Interrupted:
        def get(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(generation, "_queue", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        next(generation)
    assert generation.cancelled
