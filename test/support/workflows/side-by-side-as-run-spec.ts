// Sandbox-safe. The entry of one test's own bundle: gates side by side under the name of a type that records
// by local activities, as specs with parallel steps will. Its histories replay with this bundle only.
export { gatesSideBySide as runSpec } from './own.ts';
