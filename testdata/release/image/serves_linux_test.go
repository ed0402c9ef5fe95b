package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runs is what an image says about itself.
type runs struct {
	Config struct {
		User, StopSignal     string
		Env, Entrypoint, Cmd []string
	}
}

// unpack writes an image's layers into a folder, as an engine does, and returns what it runs.
func unpack(t *testing.T, image, root string) (c runs) {
	t.Helper()
	data, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	layout, _ := files(t, bytes.NewReader(data))
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(layout["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json: %v, %s", err, layout["index.json"])
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	blob(t, layout, index.Manifests[0].Digest, &manifest)
	blob(t, layout, manifest.Config.Digest, &c)
	for _, l := range manifest.Layers {
		unpacked, err := gzip.NewReader(bytes.NewReader(layout["blobs/"+strings.Replace(l.Digest, ":", "/", 1)]))
		if err != nil {
			t.Fatal(err)
		}
		content, heads := files(t, unpacked)
		for _, folders := range []bool{true, false} {
			for name, h := range heads {
				if folders == (h.Typeflag == tar.TypeDir) {
					put(t, filepath.Join(root, name), h, content[name])
				}
			}
		}
	}
	return c
}

func put(t *testing.T, path string, h *tar.Header, content []byte) {
	t.Helper()
	var err error
	if h.Typeflag == tar.TypeDir {
		err = os.MkdirAll(path, 0o755)
	} else {
		err = os.WriteFile(path, content, h.FileInfo().Mode())
	}
	if err == nil && os.Getuid() == 0 {
		err = os.Lchown(path, h.Uid, h.Gid)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// container starts the image's program with nothing but the image's files, as its user: in a chroot, and without root's
// rights in a user namespace where that user is the test's own.
func container(t *testing.T, root string, c runs, args ...string) *exec.Cmd {
	t.Helper()
	name, group, _ := strings.Cut(c.Config.User, ":")
	uid, err := strconv.Atoi(name)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(group)
	if err != nil {
		t.Fatal(err)
	}
	in := &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		in.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	} else {
		in.Cloneflags = syscall.CLONE_NEWUSER
		in.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
		in.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: os.Getgid(), Size: 1}}
	}
	said := new(bytes.Buffer)
	p := &exec.Cmd{Path: c.Config.Entrypoint[0], Args: append(c.Config.Entrypoint[:1:1], args...), Env: c.Config.Env, Dir: "/",
		Stdout: said, Stderr: said, SysProcAttr: in}
	runtime.LockOSThread() // Pdeathsig is of the thread
	if err := p.Start(); err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("SKIPPED: no chroot can be entered here: ", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if t.Failed() {
			t.Logf("%v said:\n%s", args, said)
		}
	})
	return p
}

// freePort is one that nobody listens on, below those that systems give to outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port of a hundred")
	return 0
}

// TestTheImageServes: nothing but what is in the image, as its user, with a configuration that is mounted, answers a
// first request and ends well by the image's signal. BIN is the daemon's binary.
func TestTheImageServes(t *testing.T) {
	binary := os.Getenv("BIN")
	if binary == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("BIN is not set")
		}
		t.Skip("SKIPPED: BIN names no binary of warmpath; make build, then BIN=$PWD/bin/warmpath")
	}
	dir, err := os.MkdirTemp("", "image") // and not t.TempDir, whose folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, image := filepath.Join(dir, "root"), filepath.Join(dir, "image.tar")
	if err := write(image, "v9", "", []string{runtime.GOOS + "/" + runtime.GOARCH + "=" + binary}); err != nil {
		t.Fatal(err)
	}
	c := unpack(t, image, root)
	worker, clients, admin := freePort(t), freePort(t), freePort(t)
	config := fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n[[pools]]\nstrategy = \"prefixaware\"\n"+
		"[[pools.workers]]\nurl = \"http://127.0.0.1:%d\"\n", clients, admin, worker)
	if err := os.WriteFile(filepath.Join(root, "etc/warmpath/warmpath.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	container(t, root, c, "sim", "--listen", fmt.Sprint("127.0.0.1:", worker))
	serve := container(t, root, c, c.Config.Cmd...)
	body := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/v1/chat/completions", clients), "application/json",
			strings.NewReader(`{"model":"sim","messages":[{"role":"user","content":"Hello"}],"max_tokens":4}`))
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if body = string(text); r.StatusCode == http.StatusOK {
			break
		}
	}
	if !strings.Contains(body, `"object":"chat.completion"`) {
		t.Fatalf("the first request brought %q", body)
	}
	if kept, err := os.ReadDir(filepath.Join(root, "var/cache/warmpath")); err != nil || len(kept) == 0 {
		t.Errorf("the image's user has kept no compiled strategy: %v, %v", kept, err)
	}
	if c.Config.StopSignal != "SIGTERM" {
		t.Errorf("it ends by %s", c.Config.StopSignal)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
