// Rows of logits of which no token can be chosen.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';

/** In place of a token: a logit of the row is NaN; or none has a chance, none being finite. */
export const [NAN, NOTHING] = [-1, -2];

/** @param row undefined where there is one only. */
export function noToken(fault: number, step: number, row: number | undefined): RuntimeError {
  const why = fault === NAN ? 'has logits that are NaN' : 'has no logit that is a finite number';
  const where = row === undefined ? '' : `, row ${row},`;
  return new RuntimeError(
    ErrorCode.runtime_exception,
    `generate: step ${step}${where} ${why}, so that no token can be chosen: ` +
      'the model, or its precision, breaks on what it was given',
  );
}
