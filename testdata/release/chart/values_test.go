package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
)

// set returns the values of helm's --set, or of its --set-file where the text comes with it.
func set(t *testing.T, flags string, config ...string) map[string]any {
	t.Helper()
	values, err := strvals.Parse(flags)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range config {
		values["config"] = text
	}
	return values
}

const (
	served = "[server]\nlisten = \":8080\"\n"
	pools  = "[[pools]]\n[[pools.workers]]\nurl = \"http://vllm:8000\"\n"
	kv64   = "[kv_cache]\nresp = \":6380\"\nmax_bytes = 68_719_476_736 # 64 GiB\n"
)

// TestRefused: what would be swallowed without a word, or give pods that never get ready, is refused, and the error says what
// is wrong.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		want   string
	}{
		"everybody's word for replicas": {set(t, "replicaCount=3"), "replicaCount"},
		"a word below":                  {set(t, "image.tags=v1"), "tags"},
		"a text as a number":            {set(t, "replicas=many"), "replicas"},
		"no replica":                    {set(t, "replicas=0"), "replicas"},
		"a scheme":                      {set(t, "probeScheme=ftp"), "probeScheme"},
		"a type of the Service":         {set(t, "service.type=Loadbalancer"), "type"},
		"no configuration":              {set(t, "config=nonsense"), "config has no [[pools]]"},
		"loopback":                      {set(t, "", "[server]\nlisten = \"127.0.0.1:8080\"\n"+pools), `config has listen = "127.0.0.1:8080"`},
		"the default of listen":         {set(t, "", pools), "config has no listen"},
		"another port":                  {set(t, "", "[server]\nlisten = \":80\"\n"+pools), `config has listen = ":80"`},
		"a monitor without a port":      {set(t, "podMonitor.enabled=true", served+pools), `write admin = ":9090"`},
		"the KV cache, limit":           {set(t, "", served+kv64+pools), "resources.limits.memory is 2Gi: write at least 66560Mi"},
		"its default, limit":            {set(t, "", served+"[kv_cache]\nhyperpod = \":9200\"\n"+pools), "takes 4294967296 bytes"},
		"a limit a little too low":      {set(t, "resources.limits.memory=66559Mi", served+kv64+pools), "66559Mi"},
		"a limit in bytes":              {set(t, "resources.limits.memory=2147483648", served+kv64+pools), "at least 66560Mi"},
	} {
		_, err := render(t, "warmpath", c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, c.want)
		}
	}
	for name, values := range map[string]map[string]any{
		"the KV cache with room":    set(t, "resources.limits.memory=65Gi", served+kv64+pools),
		"in decimal units":          set(t, "resources.limits.memory=70G", served+kv64+pools),
		"no limit":                  set(t, "resources.limits.memory=null", served+kv64+pools),
		"a cache without a port":    set(t, "", served+"[kv_cache]\nmax_bytes = 68719476736\n"+pools),
		"another table's max_bytes": set(t, "", served+"[cache]\nmax_bytes = 68719476736\n"+pools),
		"of a chart around it":      set(t, "global.registry=x"),
	} {
		if _, err := render(t, "warmpath", values); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOptions: objects that a value turns on, and fields that it sets.
func TestOptions(t *testing.T) {
	o := rendered(t, "edge", set(t, "networkPolicy.enabled=true,networkPolicy.admin[0].podSelector.matchLabels.app=prometheus,"+
		"podMonitor.enabled=true,podMonitor.labels.release=stack,service.type=LoadBalancer,service.annotations.a=b,"+
		"podAnnotations.note=x,affinity.nodeAffinity.y=z"))
	for object, wants := range map[string][]string{
		"NetworkPolicy edge": {"podSelector:{matchLabels:{app.kubernetes.io/instance:edge,", "ingress:[{ports:[{port:http}]},{from:[{podSelector:{matchLabels:{app:prometheus}}}],ports:[{port:admin}]}]"},
		"PodMonitor edge":    {"release:stack", "authorization:{credentials:{key:token,name:warmpath-admin}}", "path:/metrics,port:admin"},
		"Service edge":       {"type:LoadBalancer", "annotations:{a:b}", "ports:[{name:http,port:80,targetPort:http}]"},
		"Deployment edge":    {"note:x", "affinity:{nodeAffinity:{y:z}}", "checksum/config:"},
	} {
		text := strings.ReplaceAll(jsonOf(t, o[object]), `"`, "")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s is not in %s", object, want, text)
			}
		}
	}
}

// TestNotes: routers that share nothing are named, those with a Redis or alone are not.
func TestNotes(t *testing.T) {
	notes := func(values map[string]any) string {
		t.Helper()
		files, err := render(t, "warmpath", values)
		if err != nil {
			t.Fatal(err)
		}
		return files["warmpath/templates/NOTES.txt"]
	}
	const alone = "The 2 routers share nothing"
	if text := notes(nil); !strings.Contains(text, alone) || !strings.Contains(text, "create secret generic warmpath-admin -n fleet") {
		t.Errorf("the notes of the default values:\n%s", text)
	}
	for name, values := range map[string]map[string]any{
		"one router": set(t, "replicas=1"),
		"a Redis":    set(t, "", served+"[history]\nredis = \"redis://cache:6379/0\"\n"+pools),
		"its file":   set(t, "", served+"[cache]\nredis_url_file = \"/redis/url\"\n"+pools),
	} {
		if text := notes(values); strings.Contains(text, "share nothing") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if text := notes(set(t, "", served+"[cache]\nredis = \"\"\n"+pools)); !strings.Contains(text, alone) {
		t.Errorf("a Redis without a name counts as one:\n%s", text)
	}
}
