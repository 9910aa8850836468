"""Decoders timed from the view of users: the prompt, then token by token."""

from py_ort.bench.decode.decode_table import decode_table as decode_table
from py_ort.bench.decode.measure import DecodeRow as DecodeRow
from py_ort.bench.decode.measure import measure_decoder as measure_decoder
