package main

import (
	"io"
	"net"
)

// relay passes bytes between its clients and one worker and does nothing else: what a departure costs on this machine
// at the least. A client that leaves takes its connection to the worker with it.
func relay(listen, to string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			worker, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer worker.Close()
			go func() {
				defer client.Close()
				io.Copy(client, worker)
			}()
			io.Copy(worker, client)
		}()
	}
}
