// Sandbox-safe. Codes with which a run, a step or an effect can fail; they are Temporal failure
// types, so they stand in histories and must not change.

export type FailureCode =
  | 'invalid_start' // the start input is not one that runSpec understands
  | 'invalid_arguments' // the resolved arguments break the tool's schema
  | 'invalid_value' // a value that is not JSON (undefined, NaN, Date, a cycle, …)
  | 'invalid_name' // a position name outside [A-Za-z0-9._-] and /
  | 'duplicate_position' // a name used while its earlier use is still open, or that is a child run's
  | 'payload_too_large' // canonical payload over 256 KiB
  | 'unknown_tool'
  | 'unresolved_reference' // a template names an input or output that is not there
  | 'approval_required' // a tool that requires approval was scheduled without a grant
  | 'grant_invalid' // forged, altered, foreign or of a removed key
  | 'payload_changed' // arguments at the activity do not hash to the grant's hash
  | 'preparation_failed' // the recording activity kept failing
  | 'effect_failed' // the target refused, clearly: it did not happen
  | 'carry_too_large' // what a run would carry into its next execution is over 1 MiB
  | 'freeze_mismatch' // the workflow froze another payload than the API that asked for the approval
  | 'effect_in_doubt'; // it may or may not have happened

const clearCodes: readonly string[] = [
  'approval_required',
  'grant_invalid',
  'payload_changed',
  'effect_failed',
] satisfies FailureCode[];

/** Whether a failure of `perform` says for sure that the effect did not happen in that attempt. */
export function isClearFailure(type: string | null | undefined): boolean {
  return clearCodes.includes(type ?? '');
}
