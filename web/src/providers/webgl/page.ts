// WebGL, before anything of it is loaded.
import type { PageSide } from '../../device/module';

let inPage: boolean | undefined;

/** True if a canvas has WebGL 2 and an OffscreenCanvas, which workers have, does not, as in WebKitGTK. */
function onlyInPage(): boolean {
  if (typeof document === 'undefined') return false;
  const canvas = document.createElement('canvas');
  const offscreen = typeof OffscreenCanvas === 'undefined' ? undefined : new OffscreenCanvas(1, 1);
  return !offscreen?.getContext('webgl2') && canvas.getContext('webgl2') !== null;
}

const webgl: PageSide = {
  isHere: () => typeof WebGL2RenderingContext !== 'undefined',
  needsPage: () => (inPage ??= onlyInPage()),
  optionsOf: () => ({}),
  objects: [],
  sourceOf: () => undefined,
};

export default webgl;
