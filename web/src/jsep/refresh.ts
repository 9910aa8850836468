// A recording brought up to date, where all that changed since is what the CPU makes of feeds for the GPU: a mask that
// grows word by word gives a number to upload, and says nothing else that a kernel has asked for.
import { Location } from '../schema';
import type { Core } from '../core/core';
import type { CoreInput } from '../core/words';
import { sameContents } from '../contract/elements';
import type { Refreshable, UploadEvent } from '../device/recording';
import { answeredAlike, inputOf, sameTensor } from './signature';

/**
 * Changes what the recording's one segment uploads to what `given` says.
 * @returns whether it is as a walk would record it now; if not, nothing was changed.
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
    // What is uploaded once only is not changed here.
    if (!upload || (upload.fixed && !sameContents(upload.data, bytes))) return false;
    changes.push([upload, bytes]);
  }
  for (const [upload, bytes] of changes) upload.data = bytes;
  return true;
}
