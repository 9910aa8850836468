// WebGL, before anything of it is loaded.
import type { PageSide } from '../../device/module';

let inPage: boolean | undefined;

/** True if a canvas has WebGL 2 and an OffscreenCanvas, which workers have, does not, as in WebKitGTK. */
const onlyInPage = () =>
  [globalThis.OffscreenCanvas && new OffscreenCanvas(1, 1), globalThis.document?.createElement('canvas')]
    .map((canvas) => canvas?.getContext('webgl2'))
    .every((context, i) => !context === (i === 0));

const webgl: PageSide = {
  isHere: () => true,
  needsPage: () => (inPage ??= onlyInPage()),
  optionsOf: () => ({}),
  objects: [],
  sourceOf: () => undefined,
};

export default webgl;
