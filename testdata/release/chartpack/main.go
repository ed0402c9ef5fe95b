// Command chartpack writes a Helm chart as the .tgz that helm push takes, without helm. The version goes into
// Chart.yaml: of the chart, and as appVersion, which is the tag of the image. What a link leads to is packed in its
// place. The same chart gives the same bytes.
//
//	testdata/run release/chartpack -version v1.2.3 -o warmpath.tgz deploy/helm/warmpath
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "chart.tgz", "file to write")
	version := flag.String("version", "v0.0.0-dev", "of the chart and of the image")
	flag.Parse()
	if err := pack(*out, *version, flag.Arg(0)); err != nil {
		log.Fatal("chartpack: ", err)
	}
}

var versions = regexp.MustCompile(`(?m)^(version: |appVersion: v).*$`)

func pack(out, version, chart string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	zipped := gzip.NewWriter(f)
	packed := tar.NewWriter(zipped)
	err = filepath.WalkDir(chart, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Base(path) == "Chart.yaml" {
			text = versions.ReplaceAll(text, []byte("${1}"+strings.TrimPrefix(version, "v")))
		}
		name, err := filepath.Rel(filepath.Dir(chart), path)
		if err != nil {
			return err
		}
		err = packed.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(text))})
		if err != nil {
			return err
		}
		_, err = packed.Write(text)
		return err
	})
	return errors.Join(err, packed.Close(), zipped.Close(), f.Close())
}
