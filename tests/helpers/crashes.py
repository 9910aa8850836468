"""Models that crash the core: something of the browser's own that the core calls throws, once, through its frames."""

from __future__ import annotations

import small_models
from onnx import helper

#: JavaScript, called with how: "trap" and "memory" like WebAssembly, "stack" by endless recursion; and where: "kernel",
#: which copies a kilobyte or more, or "walk", between two nodes, after a pause of the walk.
CRASH = """([how, where]) => {
    const made = (...code) => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([
        0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 3, 1, 0, 0, 7, 5, 1, 1, 102, 0, 0,
        10, code.length + 4, 1, code.length + 2, 0, ...code, 11,
    ]))).exports.f;
    const endless = () => 1 + endless();
    const crash = { trap: made(0), memory: made(65, 0, 40, 2, 0, 26), stack: endless }[how];
    const ofTheCore = () => new Error().stack.includes('wasm-function');
    if (where === 'kernel') {
        const { copyWithin } = Uint8Array.prototype;
        Uint8Array.prototype.copyWithin = function (...args) {
            if (!ofTheCore()) return copyWithin.apply(this, args);
            delete Uint8Array.prototype.copyWithin;
            const until = performance.now() + 300;
            while (performance.now() < until);
            crash();
        };
    } else {
        let calls = 0;
        performance.now = () => {
            if (!ofTheCore()) return Performance.prototype.now.call(performance);
            // The first call is of the run's beginning, and the third is what follows a pause.
            if (++calls < 3) return Performance.prototype.now.call(performance) + 1000 * calls;
            delete performance.now;
            crash();
        };
    }
}"""


def joined(then: str = "") -> bytes:
    """y = x joined with itself, of [1024]: on wasm its kernel copies them. `then`: a following operator."""
    nodes = [helper.make_node("Concat", ["x", "x"], ["xx" if then else "y"], name="joined", axis=0)]
    if then:
        nodes.append(helper.make_node(then, ["xx"], ["y"]))
    return small_models.model(nodes, [small_models.floats("x", [1024])], [small_models.floats("y", [2048])])
