// The status of a failed gRPC call. Most calls of the Temporal client wrap it in an error of their own;
// `fetchHistory` gives it as it came.
import { isGrpcServiceError, ServiceError, WorkflowNotFoundError } from '@temporalio/client';

// gRPC status codes (grpc.github.io/grpc/core/md_doc_statuscodes.html)
export const grpc = {
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  failedPrecondition: 9,
  unauthenticated: 16,
};

export function grpcCode(error: unknown): number | undefined {
  const cause = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(cause) ? cause.code : undefined;
}

/** Temporal keeps no such execution: there was none, it was deleted, or its retention has passed. */
export function isNotKept(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || grpcCode(error) === grpc.notFound;
}
