// Sandbox-safe. The entry of one test's own bundle: gates that are carried, under the name of a type that records by
// local activities, as specs with parallel steps will. Its histories replay with this bundle only.
export { carriedGates as runSpec } from './carried.ts';
