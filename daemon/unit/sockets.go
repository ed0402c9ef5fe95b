package unit

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
)

// Sockets are listeners that the process was started with; nil = it has to bind its own.
type Sockets struct {
	Client, Admin net.Listener
}

// Any reports whether there is one.
func (s Sockets) Any() bool { return s.Client != nil || s.Admin != nil }

// inherit takes the sockets of the environment.
func inherit() (Sockets, error) { return assign(activation.Files(true)) }

// assign says which socket is for whom: one named "client" or "admin" (systemd's FileDescriptorName=) is for that, any
// other is for the clients, or for the operator if they have theirs. It closes the files.
func assign(files []*os.File) (s Sockets, err error) {
	var unnamed []*os.File
	for _, f := range files {
		defer f.Close()
		switch f.Name() {
		case "client":
			err = errors.Join(err, take(&s.Client, f))
		case "admin":
			err = errors.Join(err, take(&s.Admin, f))
		default:
			unnamed = append(unnamed, f)
		}
	}
	for _, f := range unnamed {
		place := &s.Client
		if s.Client != nil {
			place = &s.Admin
		}
		err = errors.Join(err, take(place, f))
	}
	return s, err
}

// take makes a listener of f.
func take(place *net.Listener, f *os.File) error {
	if *place != nil {
		return fmt.Errorf("unit: the process was started with a socket %q too many: it takes one for clients and one "+
			"for the operator; name them with FileDescriptorName=client and FileDescriptorName=admin", f.Name())
	}
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("unit: the process was started with a socket %q that does not listen; use ListenStream=: %w",
			f.Name(), err)
	}
	if _, tcp := l.(*net.TCPListener); !tcp {
		l.Close()
		return fmt.Errorf("unit: the process was started with a socket %q that is not TCP; write ListenStream= with a port",
			f.Name())
	}
	*place = l
	return nil
}
