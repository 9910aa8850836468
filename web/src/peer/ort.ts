// The parts of onnxruntime-web that we use.
export interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: ArrayBufferView;
  dispose(): void;
}

export interface OrtSession {
  readonly outputNames: readonly string[];
  run(feeds: Record<string, OrtTensor>): Promise<Record<string, OrtTensor>>;
  release(): Promise<void>;
}

export interface Ort {
  readonly env: { logLevel: string; wasm: { numThreads: number; wasmPaths: unknown }; versions: { web: string } };
  readonly Tensor: new (type: string, data: ArrayBufferView, dims: readonly number[]) => OrtTensor;
  readonly InferenceSession: { create(model: Uint8Array, options: object): Promise<OrtSession> };
}
