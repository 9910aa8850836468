// ONNX models that a page passes as bytes, and their exports: files in the folder `env.exports`, named by the SHA-256
// of the models, as `py-ort export SCRIPT.js` writes them.
import { host } from '../host';
import { isOnnx, type ModelFile } from '../package/model_kinds';
import { invalid, messageOf, RuntimeError } from '../errors';
import { ErrorCode } from '../schema';
import { env } from './env';

/** Opens the page's model, or its export. */
export async function opened<T>(model: ModelFile, open: (model: ModelFile) => Promise<T>): Promise<T> {
  const file = await exportedOf(model);
  try {
    return await open(file);
  } catch (error) {
    if (file === model || !/answered 404/.test(messageOf(error))) throw error;
    const text = `the model is an ONNX file, and env.exports has no export of it: ${messageOf(error)}`;
    throw new RuntimeError(ErrorCode.invalid_graph, `${text}. \`py-ort export MODEL.onnx\` and SCRIPT.js write them`);
  }
}

/** The file to open: the page's own, unless it is an ONNX model and there is a folder of exports. */
async function exportedOf(model: ModelFile): Promise<ModelFile> {
  if (env.exports === undefined || !(model instanceof ArrayBuffer || model instanceof Uint8Array)) return model;
  const bytes = model instanceof Uint8Array ? model : new Uint8Array(model);
  if (!isOnnx(bytes)) return model;
  const folder = String(env.exports);
  return new URL(`${await sha256(bytes)}.pyort`, host.resolve(folder.endsWith('/') ? folder : `${folder}/`));
}

/** The SHA-256 of bytes, in hexadecimal digits. */
export async function sha256(bytes: Uint8Array): Promise<string> {
  if (!globalThis.crypto?.subtle)
    throw invalid('env.exports and env.compiler need a page served by https, or from this machine');
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
