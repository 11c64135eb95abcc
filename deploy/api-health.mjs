// The API's health check in a container: does this process answer? Whether Temporal does is `/readyz`, and no
// reason to restart an API.
const port = process.env.COUNTERSIGN_PORT || '7280';
const answer = await fetch(`http://127.0.0.1:${port}/livez`);
process.exitCode = answer.ok ? 0 : 1;
