"""The life of a session: opened with a plan, told of shapes, run."""
