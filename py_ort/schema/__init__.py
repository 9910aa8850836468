"""The FlatBuffers schema: dtypes, plan, messages, error codes."""
