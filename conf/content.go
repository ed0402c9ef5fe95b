package conf

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxPEM bounds certificates: the bundle of a system's authorities is 250 KB.
const maxPEM = 1 << 20

// read reads a regular file of bounded size: opening a FIFO would wait for ever. Its errors name the file.
func read(path string, limit int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, limit)
	}
	return data, nil
}

// readPEM reads a file that a key names, and reports it if it cannot be read.
func readPEM(r *report, path, file, remedy string) (data []byte, ok bool) {
	data, err := read(file, maxPEM)
	if err != nil {
		r.add(path, err.Error(), remedy+", readable for this user")
	}
	return data, err == nil
}

// checkAuthorities checks a file of certificates against which others are verified.
func checkAuthorities(r *report, path, file string) {
	if file == "" {
		return
	}
	const remedy = "give the PEM file of who signs the certificates"
	if data, ok := readPEM(r, path, file, remedy); ok && !x509.NewCertPool().AppendCertsFromPEM(data) {
		r.add(path, "there is no certificate in "+file, remedy)
	}
}
