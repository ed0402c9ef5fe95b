package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// turns is how many calls of a tool each agent is made to do before its last answer.
var turns = flag.Int("turns", 5, "calls of a tool that each coding agent is made to do")

// patience is for one agent and all its turns; Qwen Code needs a quarter of a minute.
const patience = 2 * time.Minute

// routerURL stands for the router's URL in the settings of agents.
const routerURL = "http://ROUTER"

// agent is a coding agent that runs without a terminal.
type agent struct {
	name    string
	program string // of its package
	args    []string
	env     []string
	file    string // of its settings, in its home directory
	config  string // the settings
	final   string // finds the text of its answers in what it prints
	namedBy string // the field by which it names its session; "" = it has none
	child   bool   // it is made to start a subagent
	probes  int    // how often it tries a WebSocket before it asks
}

// noTelemetry keeps what is no request to the router on this machine: nobody serves that port.
var noTelemetry = []string{"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1"}

var codexArgs = []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", task}

const (
	codexConfig = `
model = "tiny"
check_for_update_on_startup = false
[analytics]
enabled = false
`
	codexFinal = `"type":"agent_message","text":"([^"]+)"`
)

var agents = []agent{
	{
		name: "codex", program: "codex", file: ".codex/config.toml", namedBy: "Thread-Id",
		args: codexArgs, env: append(noTelemetry, "ROUTER_KEY=none"),
		config: `model_provider = "router"` + codexConfig + `
[model_providers.router]
name = "router"
base_url = "http://ROUTER/v1"
wire_api = "responses"
env_key = "ROUTER_KEY"
`,
		final: codexFinal,
	},
	{
		// Its own provider tries a WebSocket, and asks by POST only if the refusal suits it.
		name: "codex openai", program: "codex", file: ".codex/config.toml", namedBy: "Thread-Id", probes: 1,
		args: codexArgs, env: append(noTelemetry, "CODEX_API_KEY=none"),
		config: `openai_base_url = "http://ROUTER/v1"` + codexConfig,
		final:  codexFinal,
	},
	{
		name: "claude code", program: "claude", namedBy: "X-Claude-Code-Session-Id", child: true,
		args: []string{"--print", task, "--model", model, "--dangerously-skip-permissions", "--output-format", "json"},
		env: append(noTelemetry, "ANTHROPIC_BASE_URL=http://ROUTER", "ANTHROPIC_API_KEY=none",
			"ANTHROPIC_DEFAULT_HAIKU_MODEL="+model, // its subagents' own
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"IS_SANDBOX=1"), // as root it skips permissions only there
		final: `"result":"([^"]+)"`,
	},
	{
		name: "opencode", program: "opencode", file: ".config/opencode/opencode.json", namedBy: "X-Session-Affinity",
		child: true,
		// With a title it asks for none, which would be one more request at an uncertain time.
		args: []string{"run", "--title", "count", "--format", "json", task},
		env: append(noTelemetry, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"),
		config: `{"autoupdate": false, "share": "disabled", "model": "router/tiny", "small_model": "router/tiny",
"permission": {"*": "allow"}, "enabled_providers": ["router"], "provider": {"router": {
"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://ROUTER/v1", "apiKey": "none"},
"models": {"tiny": {"limit": {"context": 200000, "output": 8192}}}}}}`,
		final: `"type":"text","text":"([^"]+)"`,
	},
	{
		name: "qwen code", program: "qwen", file: ".qwen/settings.json",
		args: []string{"--auth-type", "openai", "--yolo", "--prompt", task},
		// It asks its model through a proxy too, whatever NO_PROXY says.
		env: []string{"OPENAI_BASE_URL=http://ROUTER/v1", "OPENAI_API_KEY=none", "OPENAI_MODEL=" + model},
		config: `{"privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
"general": {"enableAutoUpdate": false, "disableAutoUpdate": true, "disableUpdateNag": true},
"tools": {"useRipgrep": false}}`,
		final: `(?s)^(.+)$`,
	},
}

// task is what the agents are told. The workers decide what they do.
const task = "Count, please."

// agentScript tells the workers which calls to make of an agent's shell, and of its subagents in the second turn.
func agentScript(file string) error {
	var script []map[string]any
	for i := range *turns {
		count := fmt.Sprintf("seq %d %d", 100*i+100, 100*i+199)
		shell := map[string]any{"command": count, "description": "count"}
		turn := map[string]any{
			"exec_command":      map[string]any{"cmd": count},
			"run_shell_command": map[string]any{"command": count, "description": "count", "is_background": false},
		}
		if i == 1 {
			of := func(kind string) any {
				return map[string]any{"description": "count", "prompt": "Count too.", "subagent_type": kind}
			}
			turn["Agent"], turn["task"] = of("Explore"), of("general")
		} else {
			turn["Bash"], turn["bash"] = shell, shell
		}
		script = append(script, turn)
	}
	b, err := json.Marshal(script)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// agentWorkers is how many workers drive the agents.
const agentWorkers = 3

// openAgents starts the router with its workers. pool is further lines of [[pools]].
func openAgents(ctx context.Context, main *fleet, pool string) (*fleet, error) {
	dir, err := os.MkdirTemp("", "warmpath-clients-")
	if err != nil {
		return nil, err
	}
	f := &fleet{root: main.root, dir: dir, binary: main.binary, aliased: *byAlias}
	if err := f.startAgents(ctx, pool); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (h *fleet) startAgents(ctx context.Context, pool string) error {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	script := filepath.Join(h.dir, "script.json")
	if err := agentScript(script); err != nil {
		return err
	}
	urls, err := h.sim(ctx, h.binary, agentWorkers, "--script", script)
	if err != nil {
		return err
	}
	h.workers = urls
	return h.serve(ctx, h.binary, "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n"+
		fmt.Sprintf("access_log = %q\n[[pools]]\nhealth_interval = \"500ms\"\n%s", h.log(), pool)+h.workersOf(urls))
}

// log is the router's access log.
func (h *fleet) log() string { return filepath.Join(h.dir, "access.log") }

// agentChecks runs each agent through a router of its own in front of three workers that drive it.
func agentChecks(ctx context.Context, main *fleet, t *total) error {
	if *turns < 2 {
		return errors.New("-turns must be at least 2")
	}
	if err := installAgents(ctx, main.root); err != nil {
		return err
	}
	f, err := openAgents(ctx, main, "")
	if err != nil {
		return err
	}
	defer f.close()
	for _, a := range agents {
		if err := a.checks(ctx, f, t); err != nil {
			t.line(fmt.Sprintf("FAIL agent %s: %s", a.name, strings.ReplaceAll(err.Error(), "\n", " ")))
		}
	}
	return fullChecks(ctx, main, t)
}

// checks runs the agent and judges what came of it.
func (a *agent) checks(ctx context.Context, f *fleet, t *total) error {
	before, err := readLog(f.log())
	if err != nil {
		return err
	}
	said, err := a.run(ctx, f)
	if err != nil {
		return err
	}
	log, probes, err := a.await(f.log(), len(before))
	if err != nil {
		return err
	}
	runChecks(ctx, "agent "+a.name, t, []check{
		{"every turn answered, none asked twice", func(context.Context) error { return a.answered(log, probes) }},
		{"final text", func(context.Context) error { return a.told(said, log) }},
		{"session, parent and turns", func(context.Context) error { return a.named(log) }},
		{"prefix found from turn 2 on", func(context.Context) error { return found(log) }},
	})
	return nil
}

// retried is what an agent prints when it asks again.
var retried = regexp.MustCompile(`(?i)\bretr(y|ies)|reconnect|stream error`)

// run runs the agent to its end, in directories of its own, and returns what it printed.
func (a *agent) run(ctx context.Context, f *fleet) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	home, work := filepath.Join(f.dir, a.name, "home"), filepath.Join(f.dir, a.name, "work")
	file := filepath.Join(home, a.file)
	if err := errors.Join(os.MkdirAll(work, 0o755), os.MkdirAll(filepath.Dir(file), 0o755)); err != nil {
		return "", err
	}
	if a.file != "" {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(a.config, routerURL, f.url)), 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(f.root, ".cache/clients/agents/node_modules/.bin", a.program), a.args...)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + work}
	for _, v := range a.env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(v, routerURL, f.url))
	}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // npm's program starts the agent's own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	all := out.String() + log.String()
	if err != nil {
		return "", fmt.Errorf("it ended with %w: %s", err, last([]byte(all)))
	}
	if again := retried.FindString(all); again != "" {
		return "", fmt.Errorf("it says %q: %s", again, last([]byte(all)))
	}
	return out.String(), nil
}
