// The websocket to Python: messages in and out.
import { Body, ErrorT, HelloT, LogT, ProgressT, ProtocolVersion, TokensT } from '../schema';
import { codeOf, messageOf, RuntimeError } from '../errors';
import { Assembler } from '../wire/frames';
import { downloadChunks } from '../wire/download';
import { socketUrl } from './gateway';
import {
  type Announced,
  type BodyObject,
  decodeAnnounced,
  decodeMessage,
  encodeMessage,
  type ReceivedMessage,
} from '../wire/messages';

/** Handles a message; it resolves when the message's memory is no longer needed. */
export type Receive = (message: ReceivedMessage) => void | Promise<void>;

export interface Answer {
  readonly type: Body;
  readonly body: BodyObject;
  readonly payload?: readonly Uint8Array[];
  /** Called after it was sent. */
  readonly sent?: () => void;
}

export class Connection {
  private readonly assembler = new Assembler();

  /** Requests whose payload is being fetched. */
  readonly fetching = new Set<number>();
  /** Memory of the last fetched payload, for the next one: page faults cost more than copying. */
  private spare: ArrayBuffer | undefined;

  private constructor(private readonly socket: WebSocket) {}

  /** To the port and with the token in the URL of this page or worker. */
  static ofQuery(receive: Receive): Promise<Connection> {
    const query = new URLSearchParams(self.location.search);
    const [port, token] = [query.get('port'), query.get('token')];
    if (!port || token === null) throw new Error('the page needs ?port=PORT&token=TOKEN');
    return Connection.open(port, token, receive);
  }

  static open(port: string, token: string, receive: Receive): Promise<Connection> {
    const socket = new WebSocket(socketUrl(port, token));
    socket.binaryType = 'arraybuffer';
    const connection = new Connection(socket);
    socket.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
      try {
        const assembled = connection.assembler.receive(new Uint8Array(data));
        if (!assembled) return;
        if (assembled.elsewhere) void connection.fetchPayload(decodeAnnounced(assembled), receive);
        else void receive(decodeMessage(assembled));
      } catch (error) {
        console.error(`py_ort: ${messageOf(error)}`);
        socket.close(1002, messageOf(error).slice(0, 100));
      }
    });
    return new Promise((resolve, reject) => {
      socket.addEventListener('open', () => {
        connection.hello(token);
        resolve(connection);
      });
      socket.addEventListener('error', () => reject(new Error(`no websocket at port ${port}`)));
    });
  }

  /** Fetching is faster than a websocket for large data: Python then offers it at a URL. */
  private async fetchPayload(message: Announced, receive: Receive): Promise<void> {
    const fits = this.spare && this.spare.byteLength >= message.size && this.spare.byteLength <= 2 * message.size;
    const memory = fits ? this.spare! : new ArrayBuffer(message.size);
    this.spare = undefined;
    this.fetching.add(message.id);
    const payload = new Uint8Array(memory, 0, message.size);
    try {
      await downloadChunks(message.url, message.size, [{ start: 0, end: message.size }], (offset, bytes) =>
        payload.set(bytes, offset),
      );
    } catch (error) {
      this.sendError(message.id, error);
      return;
    } finally {
      this.fetching.delete(message.id);
    }
    await receive(message.withPayload(payload));
    this.spare = memory;
  }

  private hello(token: string): void {
    const { userAgent, hardwareConcurrency } = navigator;
    const hello = new HelloT(
      ProtocolVersion.current,
      userAgent,
      globalThis.crossOriginIsolated,
      'gpu' in navigator,
      hardwareConcurrency,
      token,
    );
    this.send(0, { type: Body.Hello, body: hello });
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN;
  }

  onClose(handler: () => void): void {
    this.socket.addEventListener('close', handler);
  }

  send(id: number, { type, body, payload }: Answer): void {
    if (!this.isOpen) return;
    for (const frame of encodeMessage(id, type, body, payload)) this.socket.send(frame as Uint8Array<ArrayBuffer>);
  }

  sendError(id: number, error: unknown): void {
    const { node, opType, provider } = error instanceof RuntimeError ? error.place : {};
    const stack = error instanceof Error ? (error.stack ?? '') : '';
    const body = new ErrorT(codeOf(error), messageOf(error), node ?? '', opType ?? '', provider ?? '', stack);
    this.send(id, { type: Body.Error, body });
  }

  log(severity: number, category: string, text: string): void {
    this.send(0, { type: Body.Log, body: new LogT(severity, category, text) });
  }

  /** Tokens of a generation: for each step one token per row. */
  tokens(request: number, tokens: readonly number[]): void {
    this.send(0, { type: Body.Tokens, body: new TokensT(request, [...tokens]) });
  }

  progress(request: number, stage: string, done: number, total: number): void {
    // The schema has 32 bits for each: large totals are sent in KiB.
    const unit = total > 0xffffffff ? 1024 : 1;
    this.send(0, {
      type: Body.Progress,
      body: new ProgressT(request, stage, Math.floor(done / unit), Math.floor(total / unit)),
    });
  }
}
