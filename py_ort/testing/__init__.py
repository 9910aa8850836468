"""Conformance: cases from several sources, run on our providers in browsers, compared, reported."""
