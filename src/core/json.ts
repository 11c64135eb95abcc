// Sandbox-safe. The JSON data model, and the check that an in-process value is inside it.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
