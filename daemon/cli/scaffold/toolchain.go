package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// command is one program of a toolchain, run in the project's folder. {wasm} is replaced by the module's file, {exe}
// by that of the native test.
type command struct {
	env  []string
	args []string
}

// recipe is the commands that build and test a language's project.
type recipe struct {
	mark   string // a file that only a project in this language has
	missed string // what to do if a program is not there
	needs  string // a folder of the project that a program brings; "" = none
	build  []command
	test   []command
}

var recipes = map[string]recipe{
	"go": {
		mark:   "go.mod",
		missed: "install Go 1.26 or later",
		build: []command{{env: []string{"GOOS=wasip1", "GOARCH=wasm"},
			args: []string{"go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", "{wasm}",
				"."}}},
		test: []command{{args: []string{"go", "test", "-timeout", "1m", "."}}},
	},
	"c": {
		mark:   "strategy.c",
		missed: "install clang 11 or later and lld (Debian: apt-get install clang lld)",
		build: []command{{args: []string{"clang", "--target=wasm32", "-std=c11", "-Wall", "-ffreestanding", "-O2",
			"-mbulk-memory", "-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all", "-o", "{wasm}", "strategy.c"}}},
		test: []command{
			{args: []string{"clang", "-std=c11", "-Wall", "-g", "-o", "{exe}", "strategy.c", "strategy_test.c"}},
			{args: []string{"{exe}"}},
		},
	},
	"assemblyscript": {
		mark:   "assembly/index.ts",
		missed: "install Node 18 or later, then run npm install in the folder",
		needs:  "node_modules/assemblyscript",
		build:  []command{{args: asc("{wasm}")}},
		test:   []command{{args: asc("{exe}")}, {args: []string{"node", "test.mjs", "{exe}"}}},
	},
	"rust": {
		mark:   "Cargo.toml",
		missed: "install Rust 1.63 or later, then run rustup target add wasm32-unknown-unknown",
		build: []command{{args: []string{"cargo", "rustc", "--release", "--quiet", "--target", "wasm32-unknown-unknown",
			"--crate-type", "cdylib", "--", "--emit", "link={wasm}"}}},
		test: []command{{args: []string{"cargo", "test", "--quiet"}}},
	},
	"zig": {
		mark:   "strategy.zig",
		missed: "install Zig 0.14 or later, or pip install ziglang and a script zig that runs python3 -m ziglang",
		build: []command{{args: []string{"zig", "build-exe", "strategy.zig", "-target", "wasm32-freestanding", "-mcpu",
			"mvp", "-fno-entry", "-rdynamic", "-O", "ReleaseSmall", "-fstrip", "-femit-bin={wasm}"}}},
		test: []command{{args: []string{"zig", "test", "strategy.zig"}}},
	},
}

// asc returns the compiler's call. abort would be an import that no strategy may have. The runtime is the compiler's
// default, which frees memory; with "stub" each text of a header stays for ever.
func asc(out string) []string {
	return []string{"node", "node_modules/assemblyscript/bin/asc.js", "assembly/index.ts", "-O3", "--use", "abort=",
		"-o", out}
}

// patience is how long one program of a toolchain may take. The first build of a Go module compiles the runtime.
const patience = 10 * time.Minute

// Build compiles the project in dir and returns the module's path. What the toolchain prints goes to out. The module
// takes the place of the last one in one step, so that a daemon that watches it never reads half of it.
func Build(ctx context.Context, dir string, out io.Writer) (wasm string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("scaffold: %w", err)
	}
	r, err := recipeOf(dir)
	if err != nil {
		return "", err
	}
	wasm = filepath.Join(dir, filepath.Base(dir)+".wasm")
	fresh := filepath.Join(dir, ".building-"+filepath.Base(wasm))
	defer os.Remove(fresh) // it exists after a failure only
	if err := r.run(ctx, dir, r.build, strings.NewReplacer("{wasm}", fresh), out); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, wasm); err != nil {
		return "", fmt.Errorf("scaffold: the new module cannot take its place: %w", err)
	}
	return wasm, nil
}

// Test runs the project's native test. What it prints goes to out.
func Test(ctx context.Context, dir string, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("scaffold: %w", err)
	}
	r, err := recipeOf(dir)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "warmpath-plugin-")
	if err != nil {
		return fmt.Errorf("scaffold: %w", err)
	}
	defer os.RemoveAll(temp)
	exe := filepath.Join(temp, "test")
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	return r.run(ctx, dir, r.test, strings.NewReplacer("{exe}", exe), out)
}

// recipeOf returns the recipe of the language in which the project in dir is written.
func recipeOf(dir string) (recipe, error) {
	for _, language := range Languages {
		r := recipes[language]
		if _, err := os.Stat(filepath.Join(dir, r.mark)); err == nil {
			return r, nil
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			return r, fmt.Errorf("scaffold: the project cannot be read: %w", err)
		}
	}
	return recipe{}, fmt.Errorf("scaffold: %s is no project of a strategy: it has no go.mod, strategy.c, "+
		"assembly/index.ts, Cargo.toml or strategy.zig; make one by: warmpath plugin new NAME", dir)
}

func (r *recipe) run(ctx context.Context, dir string, commands []command, fill *strings.Replacer, out io.Writer) error {
	if _, err := os.Stat(filepath.Join(dir, r.needs)); err != nil {
		return fmt.Errorf("scaffold: %s is not there; %s", r.needs, r.missed)
	}
	for _, c := range commands {
		args := make([]string, len(c.args))
		for i, a := range c.args {
			args[i] = fill.Replace(a)
		}
		if err := r.one(ctx, dir, c.env, args, out); err != nil {
			return err
		}
	}
	return nil
}

// one runs one program.
func (r *recipe) one(ctx context.Context, dir string, env, args []string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, append(os.Environ(), env...), out, out
	c.WaitDelay = time.Second
	err := c.Run()
	line := strings.Join(append(env[:len(env):len(env)], args...), " ")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("scaffold: %s is not on this machine; %s", args[0], r.missed)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("scaffold: %s took over %v and was ended", line, patience)
	case ctx.Err() != nil:
		return fmt.Errorf("scaffold: %s was interrupted", line)
	case err != nil:
		return fmt.Errorf("scaffold: %s: %w", line, err)
	}
	return nil
}
