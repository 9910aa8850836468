import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { ErrorCode } from '../../src/schema';
import { ByteReader } from '../../src/wire/byte_reader';
import { downloadChunks } from '../../src/wire/download';
import { fetched, interrupted } from '../../src/wire/fetching';
import { readerOf } from '../../src/wire/resuming';

const FILE = Uint8Array.from({ length: 3 << 20 }, (_, i) => i % 251);

/** A server of FILE for one test: `answer` does what is wrong with it, `head` answers requests of headers alone. */
async function serving(
  answer: (request: IncomingMessage, response: ServerResponse, asked: number) => void,
  work: (url: string, ranges: readonly string[]) => Promise<void>,
  head = (response: ServerResponse): void => void response.end(),
): Promise<void> {
  const ranges: string[] = [];
  const server = createServer((request, response) => {
    if (request.method === 'HEAD') return head(response);
    ranges.push(request.headers.range ?? '');
    answer(request, response, ranges.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}/file`, ranges);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Sends the requested bytes, and breaks off after `most` bytes. */
function send({ headers }: IncomingMessage, response: ServerResponse, most = Infinity): void {
  const start = Number(/bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);
  const size = FILE.length - start;
  const head = { 'Accept-Ranges': 'bytes', ETag: '"one"', 'Content-Length': size };
  response.writeHead(headers.range ? 206 : 200, head);
  response.write(FILE.subarray(start, start + Math.min(most, size)), () => {
    if (most < size) response.destroy();
    else response.end();
  });
}

async function read(url: string): Promise<Uint8Array> {
  const reader = readerOf(await fetched(url), url);
  const whole = new Uint8Array(FILE.length);
  whole.set(await reader.read(1000));
  await reader.each(FILE.length, (offset, bytes) => whole.set(bytes, offset));
  return whole;
}

test('an answer that breaks off is asked for again, from where it ended', () =>
  serving(
    (request, response) => send(request, response, 1_300_000),
    async (url, ranges) => {
      assert.deepEqual(await read(url), FILE);
      assert.equal(ranges[0], '');
      const starts = ranges.slice(1).map((range) => Number(/^bytes=(\d+)-$/.exec(range)![1]));
      assert.ok(starts.length >= 2 && starts.every((start, i) => start > (starts[i - 1] ?? 0)), String(ranges));
    },
  ));

for (const [name, begin, most] of [
  ['a reader', async (url, signal) => readerOf(await fetched(url, { signal }), url, { signal }).read(FILE.length), 1],
  ['ranges', (url, signal) => downloadChunks(url, FILE.length, [{ start: 0, end: 3 << 20 }], () => {}, signal), 3],
] as [string, (url: string, signal: AbortSignal) => Promise<unknown>, number][])
  test(`an aborted download closes its connections, and asks no more: ${name}`, async () => {
    const [abort, reason] = [new AbortController(), new Error('mine')];
    let closed = 0;
    const stalls = (request: IncomingMessage, response: ServerResponse, asked: number) => {
      const size = FILE.length;
      response.writeHead(request.headers.range ? 206 : 200, { 'Accept-Ranges': 'bytes', 'Content-Length': size });
      response.write(FILE.subarray(0, 1000));
      response.on('close', () => closed++);
      if (asked === most) setTimeout(() => abort.abort(reason), 50);
    };
    await serving(stalls, async (url, ranges) => {
      await assert.rejects(begin(url, abort.signal), reason);
      while (closed < most) await new Promise((resolve) => setTimeout(resolve, 10));
      await new Promise((resolve) => setTimeout(resolve, 400)); // it would ask again after 250 ms
      assert.equal(ranges.length, most);
    });
  });

test('a range that fails ends the download of the others', async () => {
  let closed = 0;
  const answer = (_: IncomingMessage, response: ServerResponse, asked: number) => {
    if (asked === 3) return response.writeHead(404).end();
    response.writeHead(206, { 'Content-Length': 1 << 20 });
    response.flushHeaders();
    response.on('close', () => closed++);
  };
  await serving(answer, async (url) => {
    await assert.rejects(
      downloadChunks(url, FILE.length, [{ start: 0, end: FILE.length }], () => {}),
      /404/,
    );
    while (closed < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  });
});

test('one that breaks off without a byte each time is given up', () =>
  serving(
    (request, response, asked) => (asked === 1 ? send(request, response, 1_300_000) : response.destroy()),
    async (url, ranges) => {
      await assert.rejects(read(url), /broke off/);
      assert.equal(ranges.length, 5);
    },
  ));

test('a file that is another by now is not taken for the rest', () =>
  serving(
    (request, response, asked) => {
      if (asked === 1) return send(request, response, 1_300_000);
      assert.equal(request.headers['if-range'], '"one"');
      response.writeHead(200, { ETag: '"two"' });
      response.end(FILE);
    },
    (url) => assert.rejects(read(url), /broke off/),
  ));

test('a server that is busy is asked again', () =>
  serving(
    (request, response, asked) => (asked < 3 ? response.writeHead(503).end() : send(request, response)),
    async (url, ranges) => {
      assert.deepEqual(await read(url), FILE);
      assert.equal(ranges.length, 3);
    },
  ));

for (const [status, after] of [
  [503, () => '2'],
  [429, () => new Date(Date.now() + 3000).toUTCString()],
] as const)
  test(`a server that is busy is asked again when it says: ${status}`, async () => {
    const times: number[] = [];
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      if (times.push(Date.now()) > 1) return send(request, response);
      response.writeHead(status, { 'Retry-After': after() }).end();
    };
    await serving(answer, async (url) => assert.deepEqual(await read(url), FILE));
    assert.ok(times[1] - times[0] >= 1900, String(times)); // a date has whole seconds
  });

test('a server that is busy for long is an error at once', () =>
  serving(
    (_, response) => response.writeHead(503, { 'Retry-After': '3600' }).end(),
    async (url, ranges) => {
      await assert.rejects(fetched(url), /answered 503 Service Unavailable .try again in 3600 s/);
      assert.equal(ranges.length, 1);
    },
  ));

for (const knowsRanges of [true, false])
  test(`an answer of unknown length that ends early is continued by ranges: ${knowsRanges}`, () =>
    serving(
      (request, response, asked) => {
        if (asked > 1) return send(request, response);
        // Without a length, and not in chunks: the end is that of the connection.
        response.useChunkedEncodingByDefault = response.shouldKeepAlive = false;
        response.writeHead(200, { ETag: '"one"', ...(knowsRanges && { 'Accept-Ranges': 'bytes' }) });
        response.end(FILE.subarray(0, 1_300_000));
      },
      async (url, ranges) => {
        if (knowsRanges) assert.deepEqual(await read(url), FILE);
        else await assert.rejects(read(url), /broke off \(it ended after 1300000 of 3145728 bytes\)/);
        assert.equal(ranges.length, knowsRanges ? 2 : 1);
      },
    ));

for (const type of ['bytes', undefined] as const)
  test(`a stream that stalls is opened again, or is over: ${type ?? 'default'}`, async () => {
    const stalling = () => {
      const start = (controller: { enqueue(chunk: Uint8Array<ArrayBuffer>): void }) =>
        controller.enqueue(FILE.slice(0, 100));
      return (type ? new ReadableStream({ type, start }) : new ReadableStream({ start })) as ReadableStream<Uint8Array>;
    };
    const over = async (how: string) => {
      throw new Error(`over: ${how}`);
    };
    const positions: number[] = [];
    const from = async (position: number) => {
      positions.push(position);
      return new Blob([FILE.subarray(position)]).stream() as ReadableStream<Uint8Array>;
    };
    const reader = new ByteReader(stalling(), over, { patience: 50, from });
    assert.deepEqual(await reader.read(40), FILE.slice(0, 40));
    assert.deepEqual(await reader.read(100_000), FILE.slice(40, 100_040));
    assert.deepEqual(positions, [40]);
    const last = new ByteReader(stalling(), over, { patience: 50, from: async () => undefined });
    await assert.rejects(last.read(101), /over: nothing came for 0.05 s/);
  });

test('a little that is left of a stream is read to its end', async () => {
  for (const [size, ended] of [
    [1000, true],
    [10 << 20, false],
  ] as const) {
    let left = size;
    const outcome = new Promise<boolean>((resolve) => {
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        const piece = Math.min(left, 100);
        controller.enqueue(new Uint8Array(piece));
        left -= piece;
        if (left > 0) return;
        controller.close();
        resolve(true);
      };
      const stream = new ReadableStream<Uint8Array>({ pull, cancel: () => resolve(false) });
      const reader = new ByteReader(stream, async (how) => Promise.reject(new Error(how)));
      void reader.read(100).then(() => reader.finish(size - 100));
    });
    assert.equal(await outcome, ended);
  }
});

test('an answer that does not begin is given up, and so is the reason of one that broke off', async () => {
  const silent = () => undefined;
  await serving(
    silent,
    async (url) => {
      const wanted = { code: ErrorCode.fail, message: /could not be fetched: no answer in 0.05 s/ };
      await assert.rejects(fetched(url, { patience: 50 }), wanted);
      await assert.rejects(interrupted(url, 'it ended', { patience: 50 }), {
        code: ErrorCode.fail,
        message: /broke off \(it ended\)/,
      });
    },
    silent,
  );
});

test('an answer that began in time may take longer', async () => {
  const slow = (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200);
    response.flushHeaders();
    setTimeout(() => response.end('all'), 200);
  };
  await serving(slow, async (url) => {
    assert.equal(await (await fetched(url, { patience: 100 })).text(), 'all');
  });
});
