package worker

// FleetSpeed is the learnt speed of the whole fleet, in a form from which another process can start.
type FleetSpeed struct {
	Seconds float64 // of prefill a token
	Samples int
}

// Speed is the learnt speed of one worker relative to the fleet's, in a form from which another process can start.
type Speed struct {
	Rel      float64 // times the fleet's seconds
	Evidence float64 // samples, those of long ago counted less
}
