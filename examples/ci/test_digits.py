import numpy as np

DIGITS = {"pixels": np.load("digits.npy")}  # 0 to 9, [10, 64]


def test_reads_digits(ort_session):
    (probabilities,) = ort_session("digits.onnx").run(None, DIGITS)
    assert probabilities.argmax(axis=1).tolist() == list(range(10))


def test_is_what_native_onnxruntime_gives(assert_matches_reference):
    assert_matches_reference("digits.onnx", DIGITS)
