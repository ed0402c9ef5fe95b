// Command pack compresses a file for the binary that embeds it: FILE becomes FILE.gz. The same bytes and Go give the
// same bytes, which gzip of the system does not promise.
package main

import (
	"bytes"
	"compress/gzip"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("pack: write: pack FILE")
	}
	if err := pack(os.Args[1]); err != nil {
		log.Fatal("pack: ", err)
	}
}

// pack leaves FILE.gz in place of the file.
func pack(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(file+".gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Remove(file)
}
