"""The life of a session: opened with a plan in a page, told of shapes, fed, run, closed."""
