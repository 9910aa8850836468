"""Decoders timed as those who write texts see them: the prompt, then word by word."""

from py_ort.bench.decode.measure import DecodeRow as DecodeRow
from py_ort.bench.decode.measure import measure_decoder as measure_decoder
from py_ort.bench.decode.report import decode_table as decode_table
