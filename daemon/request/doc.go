// Package request is the wing that a client's request passes, from its header to the last byte of the answer. It has no
// code of its own: each folder below it is a package.
//
//	front       an HTTP request becomes a message.Inbound; its header is judged before its body is read
//	admission   what may be refused before a worker is asked: rights, names, limits, the wait for a place
//	exchange    one request: its body, the choice, the attempts, the answer
//	attempt     one try of a request at one worker, to the last byte of the answer
//	catalogue   /v1/models, and waits for lists of models that are read anew
//	message     the request, the answer, errors of the router's own, and header fields
//	epoch       configuration, pools and settings in force when a request comes in, and what is kept of their workers
//	journal     what is logged and counted of requests
//	route       which worker gets it, and what is learnt at its end; no socket, no clock, no goroutine
//	record      what was decided on a request, why, and what came of it, as plain values
//	queue       the requests that no worker has room for, and whose turn is next; silent as route is
//	waiting     has those requests wait on their goroutines, and passes them their turns
//	prompt      what a body asks for: model, prompt, hashes of its blocks; what an answer said
//	tokens      the token ids of a prompt, for the workers' KV events
//	sse         where events end in a stream, and which of its bytes are their data
//	jsonwalk    walks through JSON that comes in pieces
//	resume      makes one answer of a stream that broke off and another worker's that goes on with it
//	rewrite     changes the JSON of an answer while a client reads it
//	identity    the names that agents give their sessions, and the turn of each session
//	breaks      where the prompts of a session break from turn to turn
//	relocate    moves conversations away from a worker before it leaves
//	session     which worker has a session
//	sessionapi  SageMaker's session calls and /sessions, in front of exchange
//	sagemaker   SageMaker's wire: paths, headers, errors, event streams
//	account     which shared resources each client holds
//	overflow    a body too long for memory, in a file until its worker has it
//	names       which models the names of clients mean, and replacing names in JSON
//	limit       what each API key takes, and whether one more request is let in
//	ledger      the same for all routers that share a Redis
//
// front calls exchange, exchange calls route, and none of the three knows its caller. sessionapi calls exchange, and
// these call the others. Read exchange/exchange.go first, then route/choice.go.
//
// A request uses one epoch (epoch.Epoch: configuration, pools and settings), also if a reload makes a new one
// meanwhile. What it may cost is bounded by package gate in transport; whether a worker is fit is judged by package
// worker in fleet.
package request
