"""`py-ort serve`: a development server for pages that run models.

server.py   the routes; access
access.py   host names, tokens, other origins
served_files.py  files of the user's folder, and none outside
models.py   ONNX files, compiled when a page requests them
changes.py  files that changed
pages.py    the list of models, the page of a model, and the script in the user's own pages
events.py   events for open pages
"""
