// WebNN's part that is needed before its code is loaded.
import type { PageSide } from '../../device/module';
import { navigatorMl } from './ml';

const webnn: PageSide = {
  isHere: () => navigatorMl() !== undefined,
  optionsOf: () => ({}),
  objects: ['context', 'gpuDevice'],
  sourceOf: ({ context }) => context as object | undefined,
};

export default webnn;
