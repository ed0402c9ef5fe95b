package listen

// Goner is told that a client has left.
type Goner interface {
	// Gone is called at most once a Watch, from any goroutine, with the Conn's lock held: it must be short (a close, a
	// cancel), and must neither call Watch or Unwatch of that Conn nor wait for somebody who does. One goroutine brings
	// the word to all connections of a Listener.
	Gone()
}

// Watch calls g.Gone when the client closes, resets or half-closes the connection from now to Unwatch. If it has done so before,
// Gone is called before Watch returns. A connection has one watcher: a second Watch takes the first one's place. Watch and
// Unwatch allocate nothing and make no system call.
func (c *Conn) Watch(g Goner) (gen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	c.watch, c.fired = g, false
	if c.left {
		c.fire()
	}
	return c.gen
}

// Unwatch ends the Watch that returned gen, and says whether its Gone was called. Gone neither runs nor will be called once
// Unwatch has returned. After a later Watch it does nothing and is false.
func (c *Conn) Unwatch(gen uint64) (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gen != gen {
		return false
	}
	c.watch = nil
	return c.fired
}

// peerLeft is the watcher's word.
func (c *Conn) peerLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	c.fire()
}

// fire runs with mu held.
func (c *Conn) fire() {
	if c.watch == nil {
		return
	}
	g := c.watch
	c.watch, c.fired = nil, true
	c.l.gone.Add(1)
	g.Gone()
}

func (c *Conn) watched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch != nil
}

// watcher calls peerLeft of the connections between their add and remove, at least once soon after the client has left.
type watcher interface {
	add(*Conn) error
	remove(*Conn) // also after a failed add
	close()       // once, when no connection is left
}
