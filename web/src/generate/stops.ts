// When rows end: by a token of eos, by a sequence of stop, or because they are long enough.
import type { FinishReason, Settings } from './generate_options';

export class Stops {
  private readonly rows: { readonly tokens: number[]; reason: FinishReason | undefined }[];
  /** The longest sequence that ends a row. */
  private readonly reach: number;

  constructor(
    batch: number,
    private readonly settings: Pick<Settings, 'eos' | 'stop' | 'maxNewTokens'>,
  ) {
    this.rows = Array.from({ length: batch }, () => ({ tokens: [], reason: undefined }));
    this.reach = Math.max(0, ...settings.stop.map(({ length }) => length));
  }

  /** Takes a token for each row; gives those of rows that were not over, and -1 for the others. */
  take(tokens: readonly number[]): number[] {
    return this.rows.map((row, i) => {
      if (row.reason) return -1;
      row.tokens.push(tokens[i]);
      row.reason = this.reasonOf(row.tokens);
      return tokens[i];
    });
  }

  private reasonOf(tokens: readonly number[]): FinishReason | undefined {
    const { eos, stop, maxNewTokens } = this.settings;
    if (eos.includes(tokens[tokens.length - 1])) return 'eos';
    const end = tokens.slice(Math.max(0, tokens.length - this.reach));
    const ends = (sequence: readonly number[]) =>
      sequence.length <= end.length && sequence.every((token, i) => token === end[end.length - sequence.length + i]);
    if (stop.some(ends)) return 'stop';
    return tokens.length >= maxNewTokens ? 'length' : undefined;
  }

  isOver(row: number): boolean {
    return this.rows[row].reason !== undefined;
  }

  get over(): boolean {
    return this.rows.every(({ reason }) => reason);
  }

  get counts(): number[] {
    return this.rows.map(({ tokens }) => tokens.length);
  }

  /** Once all are over. */
  reasons(): FinishReason[] {
    return this.rows.map(({ reason }) => reason!);
  }
}
