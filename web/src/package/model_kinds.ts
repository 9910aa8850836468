// The kinds of models: the part that pages need before they open one.
import { invalid, type RuntimeError } from '../errors';

export type ModelFile = string | URL | Blob | ArrayBuffer | Uint8Array;

/** ONNX files are a protobuf whose first field usually is ir_version. */
export function isOnnx(bytes: Uint8Array): boolean {
  return bytes[0] === 0x08 && bytes[1] < 0x20;
}

/** The error to throw for a value that is not a model. */
export function noModel(given: unknown): RuntimeError {
  return invalid(
    `a model is a URL, a Blob, an ArrayBuffer or a Uint8Array, not ${Object.prototype.toString.call(given)}`,
  );
}
