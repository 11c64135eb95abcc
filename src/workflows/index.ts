// Sandbox. What the worker bundles: the workflow types, and nothing else.
export { requestApproval } from './request-approval.ts';
export { runSpec } from './run-spec.ts';
