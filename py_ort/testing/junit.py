"""Results as JUnit XML, which continuous integration shows: a test suite for each run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from py_ort.testing.results import FAILED, SKIPPED, Outcome, Results

#: Characters that XML forbids.
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(runs: Sequence[Results]) -> str:
    """Return the document. Known failures are skipped there, with their reason."""
    root = ET.Element("testsuites", name="py-ort conformance")
    for run in runs:
        known = run.known.keys() if not run.error else ()
        failed = sum(o.status == FAILED and name not in known for name, o in run.cases.items())
        skipped = run.count(SKIPPED) + run.count(FAILED) - failed
        suite = ET.SubElement(root, "testsuite", name=_text(run.title), tests=str(len(run.cases)))
        counts = {"errors": failed if run.error else 0, "failures": 0 if run.error else failed, "skipped": skipped}
        suite.attrib.update({name: str(count) for name, count in counts.items()}, time=f"{run.seconds:.3f}")
        properties = ET.SubElement(suite, "properties")
        for name, value in run.as_run().items():
            if name in ("browser", "browser_version", "engine", "provider", "adapter"):
                ET.SubElement(properties, "property", name=name, value=_text(value))
        for name, outcome in sorted(run.cases.items()):
            _case(suite, run, name, outcome)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, run: Results, name: str, outcome: Outcome) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=_text(run.title.replace(" ", ".")), name=_text(name), time=f"{outcome.seconds:.4f}"
    )
    if outcome.where:
        properties = ET.SubElement(case, "properties")
        ET.SubElement(properties, "property", name="where", value=_text(outcome.where))
    if outcome.status == SKIPPED:
        ET.SubElement(case, "skipped", message=_text(outcome.reason))
    elif outcome.status == FAILED and run.error:
        ET.SubElement(case, "error", message=_text(outcome.reason))
    elif outcome.status == FAILED and name in run.known:
        why = f"known failure: {run.known[name].reason}"
        ET.SubElement(case, "skipped", message=_text(why)).text = _text(outcome.reason)
    elif outcome.status == FAILED:
        text = "\n".join([outcome.reason, *outcome.commands])
        ET.SubElement(case, "failure", message=_text(outcome.kind())).text = _text(text)


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
