// The events of a Temporal history, as far as a trail is made of them. `src/history.ts` turns the
// server's events into these; payloads of JSON are decoded, those of signals stay raw.
import type { Json } from './json.ts';
import type { RawPayload } from './signal.ts';

export interface FailureInfo {
  message: string;
  /** the failure type, such as a code of core/failures.ts; `timeout` for a timeout */
  type: string;
  details: Json[];
}

interface EventPlace {
  eventId: number;
  /** milliseconds since the epoch */
  at: number;
  /**
   * When it could be read at the latest, milliseconds: an event that Temporal held back while a workflow task
   * ran keeps its own time, and comes after later ones. Absent: `at`.
   */
  knownAt?: number;
}

export type HistoryEvent = EventPlace &
  (
    | {
        type: 'run_started';
        workflowType: string;
        input: Json;
        firstRunId: string;
        /** what a parent handed down to a child run: the root and prefix of its keys */
        handedDown?: { root: string; prefix: string };
        /** what the client that started it says of itself */
        identity?: string;
        /** the workflow id of the run that started this one as its child */
        parentId?: string;
        /** the run that this one continues */
        continuedRunId?: string;
      }
    | { type: 'task_completed' }
    | { type: 'reset'; baseRunId: string; reason: string }
    | { type: 'signaled'; name: string; input: RawPayload[]; identity: string }
    | { type: 'local_activity'; activityType: string; result?: Json; failure?: FailureInfo; summary?: string }
    | { type: 'activity_scheduled'; activityType: string; input: Json }
    | { type: 'activity_started'; scheduledEventId: number; attempt: number }
    | { type: 'activity_completed'; scheduledEventId: number; result: Json }
    | { type: 'activity_failed'; scheduledEventId: number; failure: FailureInfo }
    | { type: 'memo_changed'; fields: Record<string, Json> }
    | { type: 'run_completed'; result: Json }
    | { type: 'run_failed'; failure: FailureInfo }
    | { type: 'run_cancelled' }
    | { type: 'run_terminated'; reason: string }
    | { type: 'run_timed_out' }
    | { type: 'run_continued'; nextRunId?: string }
  );

/** One execution of a chain, oldest first in a list. */
export interface Execution {
  workflowId: string;
  runId: string;
  events: HistoryEvent[];
  /** events after this one were cut off by a reset; 0: all of it, it continues an execution that was cut */
  cutAfter?: number;
  /** events up to this one were copied by a reset, from the execution that it cut */
  copied?: number;
}
