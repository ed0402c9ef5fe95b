package conf

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// sum is a digest over names and contents; its zero value is that of no readable files.
type sum [sha256.Size]byte

// digest reads all files. ok is false if one of them cannot be read now.
func digest(files []string) (s sum, ok bool) { return digestOf(files, sumsOf(files)) }

// sumsOf returns the sum of each file. A file that cannot be read has none: whoever needs it reports that.
func sumsOf(files []string) map[string]sum {
	sums := map[string]sum{}
	for _, path := range files {
		sums[path], _ = fileSum(path)
	}
	return sums
}

// digestOf sums up the files, each by its own sum. ok is false if one of them has none.
func digestOf(files []string, sums map[string]sum) (s sum, ok bool) {
	all := sha256.New()
	for _, path := range files {
		one := sums[path]
		if one == (sum{}) {
			return sum{}, false
		}
		io.WriteString(all, path+"\x00")
		all.Write(one[:])
	}
	return sum(all.Sum(nil)), true
}

// mostHashed is the most bytes of a file that are read for its sum: what is longer is no module, key or certificate.
const mostHashed = 64 << 20

// fileSum hashes one regular file: opening a FIFO would wait for ever. Of a file over mostHashed it hashes size and
// time: while 100 MB were read a few times, other requests' p99 was five times what it is.
func fileSum(path string) (s sum, err error) {
	f, info, err := openRegular(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	return contentSum(f, info)
}

// openRegular opens a regular file. Its FileInfo is that of the open file: opening one has a network file system ask
// its server, where os.Stat may return what it asked a minute ago.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, os.ErrInvalid
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// contentSum hashes the open file that info is of.
func contentSum(f *os.File, info os.FileInfo) (s sum, err error) {
	if info.Size() > mostHashed {
		return sha256.Sum256([]byte(fmt.Sprint(info.Size(), info.ModTime().UnixNano()))), nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return s, err
	}
	return sum(h.Sum(nil)), nil
}
