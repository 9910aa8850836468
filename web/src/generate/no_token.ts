// Rows of logits from which no token can be chosen.
import type { Settings } from './settings';
import { ErrorCode, RuntimeError } from './outside';

/** Returned instead of a token: a logit of the row is NaN; or none is finite, so that no token has a chance. */
export const [NAN, NOTHING] = [-1, -2];

/** @param row undefined if there is only one. */
export function noToken(
  fault: number,
  step: number,
  row: number | undefined,
  { minNewTokens, eos }: Pick<Settings, 'minNewTokens' | 'eos'>,
): RuntimeError {
  const where = `generate: step ${step}${row === undefined ? '' : `, row ${row},`}`;
  const broken = 'the model, or its precision, breaks on what it was given';
  if (fault === NOTHING && step <= minNewTokens && eos.length > 0) {
    return new RuntimeError(
      ErrorCode.invalid_argument,
      `${where} has no token to choose: minNewTokens (min_new_tokens) bars those of eos (eos_token_id) up to ` +
        `step ${minNewTokens}, and no other has a logit that is a finite number. Ask for fewer, or take tokens out ` +
        `of eos; or ${broken}`,
    );
  }
  const why = fault === NAN ? 'has logits that are NaN' : 'has no logit that is a finite number';
  return new RuntimeError(ErrorCode.runtime_exception, `${where} ${why}, so that no token can be chosen: ${broken}`);
}
