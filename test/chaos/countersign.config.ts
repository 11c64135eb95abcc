// What the API of a chaos run is started with; its workers have the same tools and the same folder of specs.
import { chaosTools } from './tools.ts';

export const config = {
  tools: chaosTools(process.env['CHAOS_TARGET'] ?? 'http://127.0.0.1:9'),
  ...(process.env['CHAOS_SPECS'] === undefined ? {} : { specs: process.env['CHAOS_SPECS'] }),
};
