// Command pack compresses a file for the binary that embeds it: FILE becomes FILE.zst. The same bytes and version
// of the library give the same bytes, which zstd of the system does not promise.
package main

import (
	"log"
	"os"

	"github.com/klauspost/compress/zstd"
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

// pack leaves FILE.zst in place of the file.
func pack(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer w.Close()
	if err := os.WriteFile(file+".zst", w.EncodeAll(b, nil), 0o644); err != nil {
		return err
	}
	return os.Remove(file)
}
