// Messages: the FlatBuffers header and the payload with the tensors' bytes.
import * as flatbuffers from 'flatbuffers';
import { type Body, Location, Message, MessageT, TensorDescT, ValueKind } from '../schema';
import { cpuElementSize, elementCount } from '../contract/elements';
import { isContainer, isOnGpu, type Tensor, type Value } from './values';
import { align16, type Assembled, frames, ProtocolError } from './frames';

/** Any body of the schema, in the form of the object API. */
export type BodyObject = NonNullable<MessageT['body']>;

export interface ReceivedMessage {
  readonly id: number;
  readonly type: Body;
  readonly body: BodyObject;
  readonly payload: Uint8Array;
}

/** The frames of a message; `type` is the type of `body`. */
export function encodeMessage(
  id: number,
  type: Body,
  body: BodyObject,
  payload: readonly Uint8Array[] = [],
): Iterable<Uint8Array> {
  // Parts start at multiples of 16; padding after the last one does not count.
  const size = payload.reduce((sum, part) => align16(sum) + part.byteLength, 0);
  const builder = new flatbuffers.Builder(256);
  builder.finish(new MessageT(id, type, body, BigInt(size)).pack(builder), 'PMSG');
  return frames(builder.asUint8Array(), payload);
}

/** A message whose payload must be fetched. */
export interface Announced {
  readonly url: string;
  readonly size: number;
  readonly id: number;
  withPayload(payload: Uint8Array): ReceivedMessage;
}

export function decodeAnnounced({ header, payload }: Assembled): Announced {
  const { size, ...message } = decodeHeader(header);
  const end = payload.indexOf(0);
  const url = new TextDecoder().decode(end < 0 ? payload : payload.subarray(0, end));
  return { url, size, id: message.id, withPayload: (fetched) => ({ ...message, payload: fetched }) };
}

export function decodeMessage({ header, payload }: Assembled): ReceivedMessage {
  const { size, ...message } = decodeHeader(header);
  if (size > payload.byteLength)
    throw new ProtocolError(`message ${message.id} announces ${size} bytes and brings ${payload.byteLength}`);
  return { ...message, payload: payload.subarray(0, size) };
}

function decodeHeader(header: Uint8Array): Omit<ReceivedMessage, 'payload'> & { size: number } {
  const buffer = new flatbuffers.ByteBuffer(header);
  if (!Message.bufferHasIdentifier(buffer)) throw new ProtocolError('a message without the identifier PMSG');
  const { id, bodyType, body, payloadSize } = Message.getRootAsMessage(buffer).unpack();
  if (!body) throw new ProtocolError(`message ${id} has a body of the unknown type ${bodyType}`);
  return { id, type: bodyType, body, size: Number(payloadSize) };
}

/** Collects the values of an answer: their descriptions, and their bytes for the payload. */
export class TensorWriter {
  readonly descriptions: TensorDescT[] = [];
  readonly payload: Uint8Array[] = [];
  private size = 0;

  add(name: string, value: Value): void {
    this.descriptions.push(this.describe(name, value));
  }

  private describe(name: string, value: Value): TensorDescT {
    if (isContainer(value)) {
      const items = value.items.map((item) => this.describe('', item));
      return new TensorDescT(name, value.dtype, [], Location.none, 0, 0n, 0n, value.kind, items);
    }
    const dims = [...value.dims];
    if (isOnGpu(value)) {
      const size = elementCount(dims) * (cpuElementSize(value.dtype) ?? 0);
      return new TensorDescT(name, value.dtype, dims, Location.device, value.gpuId, 0n, BigInt(size));
    }
    const { data } = value;
    const description = new TensorDescT(
      name,
      value.dtype,
      dims,
      Location.cpu,
      0,
      BigInt(this.size),
      BigInt(data.byteLength),
    );
    this.payload.push(data);
    this.size += align16(data.byteLength);
    return description;
  }
}

export function readValue(description: TensorDescT, payload: Uint8Array): Value {
  const { kind, dtype, items } = description;
  if (kind === ValueKind.tensor) return readTensor(description, payload);
  return { kind, dtype, items: items.map((item) => readValue(item, payload)) };
}

export function readTensor({ dtype, dims, location, gpuId, offset, size }: TensorDescT, payload: Uint8Array): Tensor {
  if (location === Location.device) return { dtype, dims, gpuId };
  return { dtype, dims, data: readBytes({ offset, size }, payload) };
}

export function readBytes({ offset, size }: Pick<TensorDescT, 'offset' | 'size'>, payload: Uint8Array): Uint8Array {
  const [start, end] = [Number(offset), Number(offset + size)];
  if (end > payload.byteLength)
    throw new ProtocolError(`a tensor ends at byte ${end} of a payload of ${payload.byteLength}`);
  return payload.subarray(start, end);
}
