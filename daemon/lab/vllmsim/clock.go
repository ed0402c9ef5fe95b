package vllmsim

import "time"

// clock turns wall time into an engine's simulated time. It stands still in a stall. Not safe for concurrent use.
type clock struct {
	start  time.Time
	speed  float64
	frozen bool          // a stall
	froze  time.Duration // simulated time at which the stall began
	lost   time.Duration // simulated time lost in stalls
}

func newClock(speed float64) clock { return clock{start: time.Now(), speed: speed} }

// uptime returns the simulated time since the start, stalls included.
func (c *clock) uptime() time.Duration { return time.Duration(float64(time.Since(c.start)) * c.speed) }

// now returns the engine's time.
func (c *clock) now() time.Duration {
	if c.frozen {
		return c.froze
	}
	return c.uptime() - c.lost
}

// until returns the wall time until an instant of the engine's, and a little more.
func (c *clock) until(at time.Duration) time.Duration {
	return time.Duration(float64(at-c.now())/c.speed) + 1
}

// freeze begins or ends a stall.
func (c *clock) freeze(on bool) {
	switch {
	case on && !c.frozen:
		c.froze = c.now()
		c.frozen = true
	case !on && c.frozen:
		c.frozen = false
		c.lost += c.now() - c.froze
	}
}
