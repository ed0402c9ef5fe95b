package front

import (
	"time"

	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// comment is a chunk with a line that every reader of server-sent events skips.
const comment = "d\r\n: keepalive\n\n\r\n"

// commenter writes comments to a client that waits for a stream of events. It implements [exchange.Commenter].
type commenter struct {
	conn  *listen.Conn
	head  answerHead // of the stream
	began bool
}

// Comment writes one, and the head before the first: whatever becomes of the request is an event from then on.
func (c *commenter) Comment() error {
	var b []byte
	if !c.began {
		c.began = true
		c.head.at = time.Now()
		b = c.head.appendTo(b)
	}
	_, err := c.conn.Write(append(b, comment...))
	return err
}
