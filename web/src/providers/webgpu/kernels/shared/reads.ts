// A limit for kernels on devices whose threads each compute one element alone, and so read many elements repeatedly.
import { type Context, KernelError } from '../../../../contract/kernel';

/** Reads that take a few seconds in software, and less than a driver's timeout on a GPU. */
const MOST_READS = 2 ** 27;

/**
 * Checks how many elements the threads of a dispatch read altogether.
 *
 * @throws KernelError that gives the node to the next provider.
 */
export function checkReads(ctx: Context, op: string, threads: number, each: number): void {
  if (ctx.device.ownElement && threads * each > MOST_READS)
    throw new KernelError(`${op}: ${threads} threads would read ${each} elements each, more than is worth it`, true);
}
