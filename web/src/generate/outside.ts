// Imports from the main file for the loops of decoders and providers' parts of them: `generatorOf` passes them when it
// loads the file, so that each class exists once. The loops import values from outside their folders only here, and
// types, which the build removes, from anywhere.
export { cpuElementSize, toNumbers, typeName } from '../contract/elements';
export { CORE_PROVIDER } from '../contract/providers';
export { RuntimeError } from '../errors';
export { countersOf } from '../device/counters';
export { storageBytes } from '../device/memory_plan';
export { nextTurn, unlessAborted } from '../turn';
export { DType, ErrorCode } from '../schema';
export { isContainer, isOnGpu, named } from '../wire/values';
export { checkRows, invalid } from './generate_options';
