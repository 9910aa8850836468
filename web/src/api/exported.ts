// ONNX models that a page hands over as bytes, and what was exported of them: files in the folder `env.exports`, by the
// SHA-256 of the models, as `py-ort export SCRIPT.js` writes them.
import { host } from '../host';
import { isOnnx } from '../package/header';
import type { ModelFile } from '../package/model_file';
import { invalid } from '../errors';
import { env } from './env';

/** What to open of what a page gave: itself, unless it is an ONNX model and there is a folder of exports. */
export async function exportedOf(model: ModelFile): Promise<ModelFile> {
  if (env.exports === undefined || !(model instanceof ArrayBuffer || model instanceof Uint8Array)) return model;
  const bytes = model instanceof Uint8Array ? model : new Uint8Array(model);
  if (!isOnnx(bytes)) return model;
  if (!globalThis.crypto?.subtle) throw invalid('env.exports needs a page served by https, or from this machine');
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  const name = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const folder = String(env.exports);
  return new URL(`${name}.pyort`, host.resolve(folder.endsWith('/') ? folder : `${folder}/`));
}
