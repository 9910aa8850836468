// A WebGPU that computes nothing: enough of the API for sessions to load and run in Node, where buffers are zeros. It
// makes WebGPU's checks of the buffers that a dispatch binds, because the memory plan must satisfy them.

export interface FakeAdapterOptions {
  /** Traits follow from these, as from a real adapter's. */
  readonly software: boolean;
  readonly f16?: boolean;
}

const LIMITS: Record<string, number> = {
  maxBufferSize: 2 ** 32,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxStorageBuffersPerShaderStage: 10,
  maxComputeWorkgroupStorageSize: 32768,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupSizeZ: 64,
  maxComputeWorkgroupsPerDimension: 65535,
  maxUniformBufferBindingSize: 65536,
};

interface FakeBuffer {
  readonly size: number;
  readonly label: string;
}

interface FakeLayout {
  readonly entries: readonly { readonly binding: number; readonly buffer: { readonly type: string } }[];
}

interface FakeEntry {
  readonly binding: number;
  readonly resource: { readonly buffer: FakeBuffer; readonly offset: number; readonly size: number };
}

/** The errors of a group of bindings; a dispatch has one group. */
function complain(label: string, { entries: types }: FakeLayout, entries: readonly FakeEntry[]): void {
  const bound = entries.map(({ binding, resource }) => ({
    ...resource,
    type: types.find((entry) => entry.binding === binding)!.buffer.type,
  }));
  if (bound.length !== types.length)
    throw new Error(`${label}: ${bound.length} bindings, ${types.length} in the layout`);
  bound.forEach((a, i) => {
    if (a.offset % 256 !== 0) throw new Error(`${label}: binding ${i} begins at ${a.offset}`);
    if (a.offset + a.size > a.buffer.size) throw new Error(`${label}: binding ${i} ends behind its buffer`);
    for (const b of bound.slice(i + 1)) {
      if (a.buffer !== b.buffer || (a.type !== 'storage' && b.type !== 'storage')) continue;
      if (a.type !== b.type) throw new Error(`${label}: reads and writes one buffer`);
      if (a.offset < b.offset + b.size && b.offset < a.offset + a.size)
        throw new Error(`${label}: writable bindings overlap`);
    }
  });
}

class FakeDevice {
  readonly limits = LIMITS;
  readonly lost = new Promise(() => undefined);
  readonly queue = {
    submit: () => undefined,
    writeBuffer: () => undefined,
    onSubmittedWorkDone: () => Promise.resolve(),
  };

  constructor(readonly features: ReadonlySet<string>) {}

  addEventListener(): void {}
  pushErrorScope(): void {}
  popErrorScope(): Promise<null> {
    return Promise.resolve(null);
  }
  createBuffer({ size, label }: { size: number; label: string }) {
    return {
      size,
      label,
      destroy: () => undefined,
      mapAsync: () => Promise.resolve(),
      unmap: () => undefined,
      getMappedRange: (_offset: number, bytes: number) => new ArrayBuffer(bytes),
    };
  }
  createShaderModule({ code }: { code: string }) {
    return { code };
  }
  createBindGroupLayout(layout: FakeLayout) {
    return layout;
  }
  createPipelineLayout(layout: object) {
    return layout;
  }
  createComputePipelineAsync(descriptor: object) {
    return Promise.resolve(descriptor);
  }
  createBindGroup({ label, layout, entries }: { label: string; layout: FakeLayout; entries: readonly FakeEntry[] }) {
    complain(label, layout, entries);
    return {};
  }
  createCommandEncoder() {
    const pass = {
      setPipeline: () => undefined,
      setBindGroup: () => undefined,
      dispatchWorkgroups: () => undefined,
      end: () => undefined,
    };
    return {
      beginComputePass: () => pass,
      copyBufferToBuffer: () => undefined,
      clearBuffer: () => undefined,
      finish: () => ({}),
    };
  }
  destroy(): void {}
}

/** Installs a `navigator.gpu` with one adapter. */
export function installFakeGpu({ software, f16 = false }: FakeAdapterOptions): void {
  const features = new Set(['subgroups', ...(f16 ? ['shader-f16'] : [])]);
  const adapter = {
    limits: LIMITS,
    features,
    info: { vendor: 'fake', architecture: software ? 'swiftshader' : 'hardware', device: '', description: '' },
    requestDevice: () => Promise.resolve(new FakeDevice(features)),
  };
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { gpu: { requestAdapter: () => Promise.resolve(adapter) } },
  });
  Object.assign(globalThis, {
    GPUBufferUsage: { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 0x40, STORAGE: 0x80, QUERY_RESOLVE: 0x200 },
    GPUMapMode: { READ: 1, WRITE: 2 },
    GPUShaderStage: { COMPUTE: 4 },
  });
}
