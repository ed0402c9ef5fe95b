package unit

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
)

// Sockets are listeners that the service manager bound; nil = the process has to bind its own.
type Sockets struct {
	Client, Admin net.Listener
}

// LogUnused logs the addresses of the configuration that these sockets replace.
func (s Sockets) LogUnused(log *slog.Logger, listen, admin string) {
	var fields []any
	if s.Client != nil {
		fields = append(fields, "clients", s.Client.Addr().String(), "unused_listen", listen)
	}
	if s.Admin != nil {
		fields = append(fields, "admin", s.Admin.Addr().String(), "unused_admin", admin)
	}
	if len(fields) > 0 {
		log.Info("serving on the service manager's sockets, not on server.listen and server.admin of the configuration: "+
			"change an address by ListenStream= of the socket unit", fields...)
	}
}

// Keys of the manager's sockets for a successor. All others have their network and address as keys.
const clientKey, adminKey = "client", "admin"

// assign gives each socket its use. One named "client" or "admin" (systemd's FileDescriptorName=) is for that, any
// other for the clients, or for the operator if the clients have theirs. assign closes the files.
func assign(files []*os.File) (s Sockets, err error) {
	var unnamed []*os.File
	for _, f := range files {
		defer f.Close()
		switch f.Name() {
		case clientKey:
			err = errors.Join(err, take(&s.Client, f))
		case adminKey:
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

// inherit makes listeners of the sockets that another warmpath hands over, by key. It closes the files.
func inherit(files []*os.File) (s Sockets, by map[string][]net.Listener, err error) {
	by = map[string][]net.Listener{}
	for _, f := range files {
		defer f.Close()
		l, lerr := net.FileListener(f)
		if lerr != nil {
			err = errors.Join(err, fmt.Errorf("unit: the socket %q, handed over by the process before, does not listen: %w",
				f.Name(), lerr))
			continue
		}
		switch key, _ := url.QueryUnescape(f.Name()); key {
		case clientKey:
			s.Client = l
		case adminKey:
			s.Admin = l
		default:
			by[key] = append(by[key], l)
		}
	}
	return s, by, err
}
