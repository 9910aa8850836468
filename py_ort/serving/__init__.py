"""`py-ort serve`: a development server for pages that run models.

server.py   the routes; who is let in
access.py   host names, tokens, other origins
files.py    files of the user's folder, and none outside
models.py   ONNX files, compiled when a page asks for them
changes.py  files that changed
pages.py    the list of models, the page of one, and what is added to the user's own
events.py   what is told to pages that are open
"""
