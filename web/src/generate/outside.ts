// What the loops of decoders, and providers' parts of them, use of the rest: handed to them by `generatorOf` when their
// file is loaded, so that there is one copy of each. They import from outside their folders here alone; types, which
// are gone by then, anywhere.
export { cpuElementSize, toNumbers, typeName } from '../contract/elements';
export { CORE_PROVIDER } from '../contract/providers';
export { RuntimeError } from '../errors';
export { countersOf } from '../device/counters';
export { storageBytes } from '../device/memory_plan';
export { nextTurn } from '../turn';
export { DType, ErrorCode } from '../schema';
export { isContainer, isOnGpu, named } from '../wire/values';
export { checkRows, invalid } from './generate_options';
