"""Execution providers as a session asks for them: by name, with options, as far as the browser has them."""
