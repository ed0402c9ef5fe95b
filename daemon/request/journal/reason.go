package journal

// Reason names a failure in metrics and logs.
type Reason string

// The reasons.
const (
	None         Reason = ""
	Removed      Reason = "removed"
	Full         Reason = "full"
	Late         Reason = "late"
	Down         Reason = "worker_down"
	Moved        Reason = "worker_silent"
	Paused       Reason = "worker_paused"
	NoDescriptor Reason = "no_descriptor" // this process had none for the connection
	Connect      Reason = "connect"
	ConnectLate  Reason = "connect_late"
	Timeout      Reason = "timeout"
	NoAnswer     Reason = "no_answer"
	Busy         Reason = "worker_busy"
	Denied       Reason = "worker_refused"
	Key          Reason = "worker_key_refused"
	Status500    Reason = "worker_500"
	Dying        Reason = "worker_dying"
	Hidden       Reason = "hidden_failure"
	TooShort     Reason = "too_short"          // of the worker's max_model_len, by its own answer
	Unfilled     Reason = "prefill_failed"     // the worker waited for a prefill that failed
	Usage        Reason = "usage_refused"      // it refuses to be asked for the usage of a stream
	Foreign      Reason = "foreign_answer"     // it belongs to another request
	Adapter      Reason = "adapter_not_loaded" // the worker did not load the request's adapter
	Unloaded     Reason = "adapter_gone"       // the worker had lost the request's adapter
	Broken       Reason = "broken"             // it broke off in the middle of the stream, and another one went on
	ClientGone   Reason = "client_gone"        // it left while the worker had the request
	Stopping     Reason = "router_stopping"    // this router, while the worker had it
)

// Moves reports whether the request left a worker against which nothing is known.
func (r Reason) Moves() bool { return r == Moved || r == Paused }
