//go:build !unix

package upstream

type firstRead struct{}

func (*firstRead) try(uintptr) bool { return true }
func (*firstRead) ask(uintptr) bool { return true }

func (cn *conn) readBlock() (*[blockSize]byte, int, error) { return cn.readHeld() }

// alive cannot be known without reading: a connection that died is found out by the request, and replaced.
func (cn *conn) alive() bool { return true }
