// Sandbox. What the worker bundles: the workflow types, and nothing else.
export { runSpec } from './run-spec.ts';
