"""`py-ort compile-server`: a service that compiles models for pages that receive them at run time.

options.py  its options
server.py   the routes
sources.py  models: uploads, and downloads from the origins that are allowed
store.py    exported models by key, each compiled once, in a process of its own
objects.py  the same models in an object store, for several servers
metrics.py  what the service did, for Prometheus
"""
