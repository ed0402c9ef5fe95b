//go:build !unix

package upstream

type firstRead struct {
	conn   *conn
	pooled bool
}

func (*firstRead) try(uintptr) bool  { return true }
func (*firstRead) send(uintptr) bool { return true }
func (*firstRead) ask(uintptr) bool  { return true }

func (cn *conn) asks() bool { return false }

// ask sends a request and waits for the first bytes of the answer. werr is what failed in sending.
func (cn *conn) ask(r *Request) (block *[blockSize]byte, n int, werr, err error) {
	if werr = sendHead(cn, r); werr == nil {
		block, n, err = cn.readHeld()
	}
	return block, n, werr, err
}

func (cn *conn) readBlock() (*[blockSize]byte, int, error) { return cn.readHeld() }

// alive cannot be known without reading: a connection that died is found out by the request, and replaced.
func (cn *conn) alive() bool { return true }
