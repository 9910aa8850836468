// Types of elements.
import type { DTypeName } from '../../../../contract/kernel';

/** Types that WebNN moves without computing with them. */
export const MOVED: readonly DTypeName[] = ['float32', 'float16', 'int32', 'int64', 'int8', 'uint8', 'bool'];

export const NUMBERS: readonly DTypeName[] = ['float32', 'float16', 'int32', 'int64', 'uint32', 'int8', 'uint8'];
export const BYTES: readonly DTypeName[] = ['uint8', 'int8'];
export const INDICES: readonly DTypeName[] = ['int32', 'int64'];
