// Clients runs the SDKs that people use against a built warmpath with four simulated workers behind it: PyPI and npm
// openai, Go openai-go, PyPI and npm anthropic, and plain HTTP for the endpoints of vLLM that no SDK has. Beside it a
// second router has the endpoints of endpoints.go for AWS's own clients of the SageMaker runtime: PyPI boto3, Go
// sagemakerruntime and npm @aws-sdk/client-sagemaker-runtime, with dummy keys. Faults that need a timely kill and 100
// MB of input are tried with Go's alone, and 500 MB without an SDK, which would hold them itself.
//
// At last it runs coding agents, without a terminal and each in a home directory of its own: Codex CLI, Claude Code,
// OpenCode and Qwen Code. Each goes through a router with three workers, which make it call its shell in five turns, or
// as many as -turns says, and where it can start a subagent. Its sessions must be known by name, and the prefix of its
// prompts be found as if there were one worker. Their updates and telemetry are off. With -first-turn 9 it does nothing
// but let each do one turn nine times at a worker and nine times through the router, and prints how long both took.
//
// With -alias the workers serve the models by other names, for which the clients' are aliases, and no client may see
// another name in any answer.
//
// With -paths each worker is below a path, and so is the router. With -dying the agents alone work, for the time given,
// while the worker that has most to do dies every 20 s; none of them may notice.
//
//	make build && cd testdata/clients && go run .
//
// It prints one line a check, "ok python openai chat", then a total, and exits 1 if one failed. It is a module of its
// own, so that no SDK is in warmpath's go.mod. Python's and Node's packages, at the exact versions of requirements.txt
// and package.json, are installed under .cache/clients when they change, and the agents, a gigabyte, at those of
// agents/package.json. Without python3 or npm their checks are skipped, with a line that says so; with CI=1 or
// WARMPATH_CI=1 that is a failure.
//
// Why real clients, when the wire is held to recordings elsewhere: each SDK has its own demands (base64 embeddings, the
// order of SSE events, a shape of errors), and ends a request in its own way, which must free the worker's slot.
package main
