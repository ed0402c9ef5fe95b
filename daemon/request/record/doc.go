// Package record has what was decided on a request and what came of it, as plain values: [Record], and [Candidate] for
// each worker that the decision saw. Package route fills them in. Headers, the access log, metrics, spans and pages
// read them, and so need nothing of route.
//
// Names and meanings of the JSON fields are those of /api/v1/decisions (docs/openapi.json).
package record
