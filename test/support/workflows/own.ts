// Sandbox-safe. Workflows of the tests themselves.

/** The least there is: tells that a worker of these tests takes workflow tasks. */
export async function answerAtOnce(input: { answer: string }): Promise<string> {
  return Promise.resolve(input.answer);
}
