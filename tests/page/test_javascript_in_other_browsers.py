"""The cases of javascript_api.mjs in Firefox and WebKitGTK: a browser with a URL, and a plain file server."""

from contextlib import closing

import pytest
from installed_browsers import need_browser
from javascript_site import case_names, lay_out
from static_site import StaticSite, browsing

WANT_WEBGPU = {
    "outputs stay on the GPU",
    "by name",
    "buffers of one's own, on a device of one's own",
    "a device or an adapter of the page's, for all sessions",
    "buffers of the page's, whose elements lie as on the CPU",
    "buffers of the page's of any size, and for shaders only",
    "GPU tensors of one thread in sessions of another",
    "on WebGPU, though all nodes are on the CPU",
    "a run's errors on the GPU are its own",
    "errors on the GPU in a run that was recorded",
    "no memory on the GPU",
    "GPU errors and validation modes",
    "a device that is lost",
    "what does nothing is said",
    "in a worker, or in the page",
    "sessions come and go on one device",
    "on wasm alone, the same numbers",
}
#: Cases that Firefox's WebGPU treats otherwise.
NOT_FIREFOX = {"GPU errors and validation modes": "an error that is no run's is told once there, in any number of runs"}


@pytest.fixture(scope="module", params=["firefox", "webkit"])
def told(request, tmp_path_factory):
    """Return the outcomes of all cases in one browser."""
    browser, begun = need_browser(request.param), "nothing"
    folder = tmp_path_factory.mktemp("javascript")
    lay_out(folder)
    try:
        with closing(StaticSite(folder)) as site, browsing(browser, f"{site.origin}/javascript_api.html"):
            while "outcomes" not in (told := site.told()):
                assert "error" not in told, told
                begun = told["begun"]
    except Exception as e:
        raise AssertionError(f"{browser} told no more after it had begun with: {begun}") from e
    return {**told, "browser": browser}


@pytest.mark.parametrize("where", ["worker", "page"])
@pytest.mark.parametrize("case", case_names())
def test_javascript(told, case, where):
    if not told["gpu"] and case in WANT_WEBGPU:
        pytest.skip(f"{told['browser']} has no WebGPU here")
    if told["browser"] == "firefox" and case in NOT_FIREFOX:
        pytest.skip(NOT_FIREFOX[case])
    assert told["outcomes"][f"{case}, {where}"] == "done"


def test_without_webgpu_a_session_goes_on_with_wasm_and_says_so(told):
    if told["gpu"]:
        pytest.skip("there is WebGPU")
    assert told["fallback"]["y"] == [11, 22, 33]
    assert told["fallback"]["providers"] == ["wasm"]
    (word,) = told["fallback"]["said"]
    assert "left out: webgpu: this browser has no WebGPU" in word
