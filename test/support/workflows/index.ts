// Sandbox-safe. The entry of the test bundle: every workflow of the product and every one of the tests.
// A workflow type that a test runs must be in here, or its history cannot be replayed at the end.
// eslint-disable-next-line no-restricted-syntax -- a bundle entry only re-exports, whatever there is
export * from '../../../src/workflows/index.ts';
// eslint-disable-next-line no-restricted-syntax -- the same
export * from './own.ts';
// eslint-disable-next-line no-restricted-syntax -- the same
export * from './carried.ts';
// eslint-disable-next-line no-restricted-syntax -- the same
export * from './names.ts';
