// WebGL, before anything of it is loaded.
import type { PageSide } from '../../device/module';

let inPage: boolean | undefined;

/** The context, or null: privacy extensions throw. */
function contextOf(canvas: OffscreenCanvas | HTMLCanvasElement | undefined): unknown {
  try {
    return canvas?.getContext('webgl2');
  } catch {
    return null;
  }
}

/** True if a canvas has WebGL 2 and an OffscreenCanvas, which workers have, does not, as in WebKitGTK. */
const onlyInPage = () =>
  [globalThis.OffscreenCanvas && new OffscreenCanvas(1, 1), globalThis.document?.createElement('canvas')]
    .map(contextOf)
    .every((context, i) => !context === (i === 0));

const webgl: PageSide = {
  isHere: () => true,
  needsPage: () => (inPage ??= onlyInPage()),
  optionsOf: () => ({}),
  objects: [],
  sourceOf: () => undefined,
};

export default webgl;
