// Dispatches whose shaders need unpacked tensors: they get copies, and their outputs are packed after them.
import { linearMain, linearWorkgroups } from './wgsl/linear';
import { inLanes } from './wgsl/lanes';
import type { Binding, DeviceTraits, Dispatch, Shader, Spec, Tensor } from '../../contract/kernel';

/** From packed to unpacked or the reverse, depending on the bindings. */
const COPY: Shader<Spec> = { name: 'repack', wgsl: () => linearMain('  y[i] = x[i];') };

/**
 * @param temp makes scratch memory for a tensor like this one, but not packed.
 * @param dispatch is called for each necessary dispatch.
 */
export function inUnpacked<S extends Spec>(
  given: Dispatch<S>,
  temp: (tensor: Tensor) => Tensor,
  dispatch: <T extends Spec>(one: Dispatch<T>) => void,
  device: DeviceTraits,
): void {
  const copies = new Map<number, Tensor>();
  const copy = (from: Tensor, to: Tensor) => {
    const count = Math.ceil(from.size / 4);
    dispatch({
      shader: COPY,
      spec: {},
      inputs: { x: inLanes(from, 4) },
      outputs: { y: inLanes(to, 4) },
      uniforms: { count },
      workgroups: linearWorkgroups(count, device),
    });
  };
  const unpacked = (binding: Binding, read: boolean): Binding => {
    const tensor = 'tensor' in binding ? binding.tensor : binding;
    if (!tensor.packing || tensor.size === 0) return binding;
    const own = copies.get(tensor.id) ?? temp(tensor);
    if (read && !copies.has(tensor.id)) copy(tensor, own);
    copies.set(tensor.id, own);
    return 'tensor' in binding ? { ...binding, tensor: own } : own;
  };
  const bindings = (all: Dispatch['inputs'], read: boolean) =>
    Object.fromEntries(Object.entries(all).map(([name, binding]) => [name, unpacked(binding, read)]));
  dispatch({ ...given, inputs: bindings(given.inputs, true), outputs: bindings(given.outputs, false) });
  for (const binding of Object.values(given.outputs)) {
    const tensor = 'tensor' in binding ? binding.tensor : binding;
    const own = copies.get(tensor.id);
    if (own) copy(own, tensor);
  }
}
