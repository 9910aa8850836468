// The placement of a model's nodes, with reasons: read from the model's file, where it follows the weights.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { fetchedModel, openFile } from '../package/model_file';
import type { ModelFile } from '../package/model_kinds';
import { Package } from '../package/package';
import { ModelCache } from './cache';
import type { Engine } from './engine';
import { partOf } from './execution_providers';
import type { PlacedNode } from './metadata';

export async function placementOf({ request, description }: Engine): Promise<readonly PlacedNode[]> {
  if (!request) {
    const text = 'placement is known of exported models, and another engine runs this one';
    throw new RuntimeError(ErrorCode.not_implemented, text);
  }
  const fetchFile = request.cache ? new ModelCache({ log: () => undefined }).fetchedOnce : fetchedModel;
  const open = (file: ModelFile) => openFile(file, undefined, fetchFile);
  const model = await Package.open(request.model, partOf(request.externalData), open);
  try {
    return ((await model.placement(description.plan)) as { nodes: readonly PlacedNode[] }).nodes;
  } finally {
    model.close();
  }
}
