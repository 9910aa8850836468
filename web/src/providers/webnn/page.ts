// WebNN, before anything of it is loaded.
import type { PageSide } from '../../device/module';
import { navigatorMl } from './ml';

const webnn: PageSide = {
  isHere: () => navigatorMl() !== undefined,
  optionsOf: () => ({}),
  objects: ['context', 'gpuDevice'],
  sourceOf: ({ context }) => context as object | undefined,
};

export default webnn;
