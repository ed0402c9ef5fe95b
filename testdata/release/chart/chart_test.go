// Package chart holds deploy/helm together with deploy/kubernetes: what the chart makes of its default values is what
// the kustomization makes, and helm's own linter has nothing to say on it. A module of its own, as helm brings half of
// Kubernetes along.
package chart

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	chartFolder = "../../../deploy/helm/warmpath"
	manifests   = "../../../deploy/kubernetes"
)

// objects are manifests by kind and name.
type objects map[string]map[string]any

// add reads the documents of a file.
func (o objects) add(t *testing.T, file, text string) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var v map[string]any
		err := d.Decode(&v)
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if v == nil {
			continue
		}
		o[v["kind"].(string)+" "+v["metadata"].(map[string]any)["name"].(string)] = v
	}
}

// render returns the files that the chart makes under the name of a release, or why helm refuses the values.
func render(t *testing.T, name string, values map[string]any) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.KubeVersion = chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: name, Namespace: "fleet", IsInstall: true}, cluster)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// rendered is what the chart makes under the name of a release.
func rendered(t *testing.T, name string, values map[string]any) objects {
	t.Helper()
	files, err := render(t, name, values)
	if err != nil {
		t.Fatal(err)
	}
	o := objects{}
	for file, text := range files {
		if strings.HasSuffix(file, ".yaml") {
			o.add(t, file, text)
		}
	}
	return o
}

// plain takes out what only one of the two has: labels beside the name.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			switch {
			case strings.HasPrefix(key, "app.kubernetes.io/") && key != "app.kubernetes.io/name", key == "helm.sh/chart":
				delete(v, key)
			default:
				v[key] = plain(x)
			}
		}
		if meta, ok := v["metadata"].(map[string]any); ok && v["kind"] != nil {
			delete(meta, "labels")
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// image names the chart's image, if the values do not.
func image(values map[string]any, repository string) map[string]any {
	i, _ := values["image"].(map[string]any)
	if i == nil {
		i = map[string]any{}
		values["image"] = i
	}
	if i["repository"] == nil {
		i["repository"] = repository
	}
	return values
}

func TestTheChartIsTheKustomization(t *testing.T) {
	var k struct {
		Resources []string
		Images    []struct{ NewName, NewTag string }
	}
	if err := yaml.Unmarshal([]byte(read(t, manifests, "kustomization.yaml")), &k); err != nil || len(k.Images) != 1 || len(k.Resources) < 4 {
		t.Fatalf("%+v, %v", k, err)
	}
	want := objects{}
	for _, f := range k.Resources {
		want.add(t, f, strings.Replace(read(t, manifests, f), "image: warmpath", "image: "+k.Images[0].NewName+":"+k.Images[0].NewTag, 1))
	}
	want["ConfigMap warmpath"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "warmpath"},
		"data": map[string]any{"warmpath.toml": read(t, manifests, "warmpath.toml")}}
	got := rendered(t, "warmpath", image(map[string]any{}, k.Images[0].NewName))
	for name, w := range want {
		if g := plain(any(got[name])); !reflect.DeepEqual(g, plain(w)) {
			t.Errorf("%s:\n%v\nwant\n%v", name, g, w)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("the kustomization has no %s", name)
	}
}

// TestTheKustomizationBuilds: kustomize, as kubectl has it within, makes every object of the folder.
func TestTheKustomizationBuilds(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), manifests)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: ServiceAccount", "kind: Role\n", "kind: RoleBinding", "kind: Deployment", "kind: Service\n",
		"kind: PodDisruptionBudget", "kind: NetworkPolicy", "kind: ConfigMap\nmetadata:\n  labels:\n    app.kubernetes.io/name: warmpath\n  name: warmpath\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// TestThePackage: what make chart writes is the chart, with the version of the release, and the files behind its links.
func TestThePackage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chart.tgz")
	if out, err := exec.Command("../../run", "release/chartpack", "-version", "v9.8.7-dev-0123abc", "-o", file, chartFolder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c, err := loader.LoadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || c.Name() != "warmpath" || c.Metadata.Version != "9.8.7-dev-0123abc" || c.AppVersion() != "v9.8.7-dev-0123abc" {
		t.Errorf("%v, %+v", err, c.Metadata)
	}
	folder, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Raw) != len(folder.Raw) || len(c.Files) != 2 {
		t.Errorf("%d files and %d more; the folder has %d", len(c.Raw), len(c.Files), len(folder.Raw))
	}
	for _, f := range c.Files {
		if len(f.Data) < 10_000 {
			t.Errorf("%s has %d bytes", f.Name, len(f.Data))
		}
	}
}

// A selector has the release's name, so that two releases in one namespace do not take each other's pods, and values
// arrive where they are read.
func TestAnotherRelease(t *testing.T) {
	o := rendered(t, "edge", map[string]any{"replicas": 3, "image": map[string]any{"repository": "registry.example.com/warmpath", "tag": "1.2.3", "pullSecrets": []any{map[string]any{"name": "pull"}}},
		"nodeSelector": map[string]any{"pool": "cpu"}, "adminSecret": "other", "probeScheme": "HTTP",
		"extraEnv":          []any{map[string]any{"name": "TEAM_A_KEY", "value": "x"}},
		"extraVolumes":      []any{map[string]any{"name": "tls", "secret": map[string]any{"secretName": "cert"}}},
		"extraVolumeMounts": []any{map[string]any{"name": "tls", "mountPath": "/tls"}}})
	d := o["Deployment edge"]
	if d == nil {
		t.Fatalf("%v", o)
	}
	spec := d["spec"].(map[string]any)
	if n := spec["replicas"]; n != int64(3) && n != float64(3) {
		t.Errorf("%v replicas", n)
	}
	labels := spec["selector"].(map[string]any)["matchLabels"].(map[string]any)
	if !reflect.DeepEqual(labels, o["Service edge"]["spec"].(map[string]any)["selector"]) || labels["app.kubernetes.io/instance"] != "edge" {
		t.Errorf("%v", labels)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(jsonOf(t, spec["template"]), `"`, "")), "")
	for _, want := range []string{"image:registry.example.com/warmpath:1.2.3", "imagePullSecrets:[{name:pull}]", "nodeSelector:{pool:cpu}",
		"secretName:other", "serviceAccountName:edge", "{name:TEAM_A_KEY,value:x}]", "{name:tls,secret:{secretName:cert}}]",
		"{mountPath:/tls,name:tls}]", "livenessProbe:{failureThreshold:6,httpGet:{path:/health,port:http,scheme:HTTP}"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLint(t *testing.T) {
	for _, m := range lint.All(chartFolder, nil, "fleet", true).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
}
