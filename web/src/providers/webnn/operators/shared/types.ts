// Types of elements.
import type { DTypeName } from '../../../../contract/kernel';

/** What WebNN moves without looking at it. */
export const MOVED: readonly DTypeName[] = ['float32', 'float16', 'int32', 'int64', 'int8', 'uint8', 'bool'];
