"""Brings operators of any opset to one form, which passes and kernels expect."""
