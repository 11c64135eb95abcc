// Sandbox. The product's own workflow types, as its workers bundle them.
export { requestApproval, runSpec } from '../../src/workflows/index.ts';
export { collect } from './collect.ts';
