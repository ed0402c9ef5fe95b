package worker

// Standing states why a request does or does not go to a worker, or to a fleet. Snapshot, Stats and every explanation
// use the same words.
type Standing uint8

// The values of Standing. A fleet has that of the worker that comes nearest to taking the request.
const (
	Ready    Standing = iota // takes the request
	Gone                     // there is no worker of that id
	Starting                 // it has had no health check yet
	Down                     // it is down. For a fleet: no worker that may have the model takes requests
	Ejected                  // it is up, but has failed so often that it is left alone for a while
	Draining                 // Drain was called for it, or its answers show that it shuts down
	Lacking                  // it does not list the model. For a fleet: no worker lists it, and all lists are known
	Full                     // it has no room: Config.MaxInFlight, MaxWait or MaxKVUse
	Held                     // it came back a short while ago, and it does not have its turn
	Panicked                 // it is not up, and is offered because no worker is: Config.Panic
	Silent                   // its port is open as far as is known, and its health checks get no answer in time
	Asleep                   // its engine has been put to sleep
	Paused                   // its engine holds its requests, and will go on with them
	Crowded                  // it refused a request a moment ago because it was full
	Fenced                   // it lacks a label of the request's Fence. For a fleet: all workers do
	TooShort                 // its max_model_len is below what the request has, and a longer worker can take it
)

// String returns the word for people and their scripts.
func (s Standing) String() string {
	return [...]string{
		Ready: "up", Gone: "gone", Starting: "starting", Down: "down", Ejected: "ejected", Draining: "draining",
		Lacking: "lacks the model", Full: "full", Held: "slow start", Panicked: "panic",
		Silent: "silent", Asleep: "asleep", Paused: "paused", Crowded: "busy", TooShort: "too short",
		Fenced: "outside of the fence",
	}[s]
}

// nearness orders the standings of a fleet's workers: the fleet has the greatest. A worker that is up but takes no
// requests counts as down.
var nearness = [...]uint8{
	Gone: 0, Fenced: 0, Lacking: 0, Down: 1, Ejected: 1, Draining: 1, Asleep: 1, Paused: 1, Starting: 2, Silent: 3,
	TooShort: 4, Full: 5, Crowded: 6, Held: 7, Panicked: 8, Ready: 9,
}

// nearer returns a fleet's standing s with one more worker, whose standing is o.
func (s Standing) nearer(o Standing) Standing {
	switch {
	case nearness[o] <= nearness[s]:
		return s
	case nearness[o] == nearness[Down]:
		return Down
	}
	return o
}
