// Updates a recording if all changes are values that the CPU computes from feeds for the GPU. For example, a mask that
// grows by a token changes a number to upload, and no other value that a kernel has read.
import { Location } from '../schema';
import type { Core } from '../core/core';
import type { CoreInput } from '../core/words';
import { sameContents } from '../contract/elements';
import type { Refreshable, UploadEvent } from '../device/recording';
import { answeredAlike, inputOf, sameTensor } from './signature';

/**
 * Replaces the uploads of the recording's one segment by those of `given`.
 * @returns true if a walk would now record the same; if false, nothing was changed.
 */
export function refresh({ runs, uploads }: Refreshable, given: readonly CoreInput[], core: Core): boolean {
  const changes: [UploadEvent, Uint8Array][] = [];
  for (const { kernel, input, tensor } of given) {
    const run = runs.get(kernel);
    const before = run && inputOf(run.words, input);
    if (!before || !sameTensor(before, tensor)) return false;
    if (tensor.location === Location.cpu && !answeredAlike(run, input, tensor, core)) return false;
    if (tensor.location !== Location.device || tensor.bytes === 0) continue;
    const upload = uploads.get(before.data);
    const bytes = core.bytes(tensor.data, tensor.bytes);
    // A one-time upload is not changed here.
    if (!upload || (upload.fixed && !sameContents(upload.data, bytes))) return false;
    changes.push([upload, bytes]);
  }
  for (const [upload, bytes] of changes) upload.data = bytes;
  return true;
}
