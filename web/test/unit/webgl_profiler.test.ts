// WebGL's times, on a context whose queries last longer the later they are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gpuTime } from '../../src/device/profile';
import type { Gl } from '../../src/providers/webgl/gl';
import { Profiler } from '../../src/providers/webgl/profiler';
import type { Timed } from '../../src/timeline';

const ROW = { kernel: 'relu', workgroups: [1, 1, 1], instance: 7 } as const;

/** Of each query the browser knows the result when it was asked a second time. */
function profiled(timed: Timed, has: { readonly timer: boolean; readonly disjoint?: boolean }) {
  const asked = new Map<number, number>();
  const seen: string[] = [];
  const gl = {
    getExtension: () => (has.timer ? { TIME_ELAPSED_EXT: 1, GPU_DISJOINT_EXT: 2 } : null),
    QUERY_RESULT_AVAILABLE: 'available',
    createQuery: () => asked.set(asked.size + 1, 0).size,
    beginQuery: (_: number, query: number) => seen.push(`begin ${query}`),
    endQuery: () => seen.push('end'),
    deleteQuery: (query: number) => seen.push(`delete ${query}`),
    getParameter: () => has.disjoint ?? false,
    getQueryParameter(query: number, what: string) {
      if (what !== 'available') return query * 1_000_000;
      asked.set(query, asked.get(query)! + 1);
      return asked.get(query)! > 1;
    },
  };
  const profiler = new Profiler({ gl, ensureAlive() {} } as unknown as Gl, timed);
  profiler.run(() => {
    for (const i of [1, 2]) profiler.dispatch(ROW, () => seen.push(`draw ${i}`));
  });
  return { profiler, seen };
}

test('each dispatch has a time, and begins where the one before ends', async () => {
  const { profiler, seen } = profiled('dispatches', { timer: true });
  const [first, second] = await profiler.dispatches();
  assert.deepEqual([first.ms, second.ms], [1, 2]);
  assert.ok(Math.abs(second.start_ms! - first.start_ms! - 1) < 1e-6);
  assert.deepEqual(seen, ['begin 1', 'draw 1', 'end', 'begin 2', 'draw 2', 'end', 'delete 1', 'delete 2']);
});

test('a run has one time', async () => {
  const { profiler, seen } = profiled('passes', { timer: true });
  assert.deepEqual(gpuTime(await profiler.passes()), { passes: 1, ms: 1, span_ms: 1 });
  assert.deepEqual(seen, ['begin 1', 'draw 1', 'draw 2', 'end', 'delete 1']);
});

for (const has of [{ timer: false }, { timer: true, disjoint: true }])
  test(`rows without times: ${JSON.stringify(has)}`, async () => {
    assert.deepEqual(await profiled('dispatches', has).profiler.dispatches(), [ROW, ROW]);
    assert.equal(gpuTime(await profiled('passes', has).profiler.passes()), undefined);
  });
