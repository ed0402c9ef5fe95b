package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chartutil"
)

// kinds are the objects that the chart may make; those of others' APIs are not decoded.
var kinds = map[string]func() any{
	"ConfigMap": func() any { return new(corev1.ConfigMap) }, "Service": func() any { return new(corev1.Service) },
	"ServiceAccount":        func() any { return new(corev1.ServiceAccount) },
	"PersistentVolumeClaim": func() any { return new(corev1.PersistentVolumeClaim) },
	"Deployment":            func() any { return new(appsv1.Deployment) },
	"Role":                  func() any { return new(rbacv1.Role) }, "RoleBinding": func() any { return new(rbacv1.RoleBinding) },
	"NetworkPolicy":           func() any { return new(networkingv1.NetworkPolicy) },
	"Ingress":                 func() any { return new(networkingv1.Ingress) },
	"PodDisruptionBudget":     func() any { return new(policyv1.PodDisruptionBudget) },
	"HorizontalPodAutoscaler": func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"PodMonitor":              nil, "PrometheusRule": nil,
}

// typed decodes an object as an API server with strict validation does: no field that it does not know, no text for a number.
func typed[T any](t *testing.T, o objects, name string) *T {
	t.Helper()
	v := new(T)
	if o[name] == nil {
		t.Fatalf("there is no %s", name)
	}
	if err := yaml.UnmarshalStrict([]byte(jsonOf(t, o[name])), v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return v
}

// TestFleetsOfOthers renders the values that users may write (values/*.yaml), decodes each object strictly, and asks what
// linters of manifests ask.
func TestFleetsOfOthers(t *testing.T) {
	files, _ := filepath.Glob("values/*.yaml")
	if len(files) < 12 {
		t.Fatalf("%d files of values", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			values, err := chartutil.ReadValuesFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := rendered(t, "edge", values)
			if dir := os.Getenv("RENDERED"); dir != "" {
				write(t, filepath.Join(dir, filepath.Base(file)), o)
			}
			for name, object := range o {
				decode, known := kinds[object["kind"].(string)]
				if !known {
					t.Errorf("%s: a kind that the test does not know", name)
				}
				if decode == nil {
					continue
				}
				if err := yaml.UnmarshalStrict([]byte(jsonOf(t, object)), decode()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, fault := range faults(t, o) {
				t.Error(fault)
			}
		})
	}
}

// write writes the objects as one file, for a linter.
func write(t *testing.T, file string, o objects) {
	t.Helper()
	var b strings.Builder
	for _, object := range o {
		fmt.Fprintf(&b, "---\n%s\n", jsonOf(t, object))
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// faults returns what a reviewer would object to.
func faults(t *testing.T, o objects) (found []string) {
	t.Helper()
	must := func(ok bool, format string, args ...any) {
		if !ok {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	name := "edge"
	if o["Deployment edge"] == nil {
		name = "llm-router"
	}
	d := typed[appsv1.Deployment](t, o, "Deployment "+name)
	pod := d.Spec.Template.Spec
	labels := d.Spec.Template.Labels
	c := pod.SecurityContext
	must(*c.RunAsNonRoot && c.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "the pod may be root, or has no seccomp profile")
	must((c.RunAsUser == nil) == (c.FSGroup == nil) && (c.RunAsUser == nil) == strings.Contains(pod.Containers[0].Image, "openshift"),
		"ids of the pod: %v %v", c.RunAsUser, c.FSGroup)
	for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
		s := c.SecurityContext
		must(*s.ReadOnlyRootFilesystem && !*s.AllowPrivilegeEscalation && slices.Contains(s.Capabilities.Drop, "ALL"), "%s: %+v", c.Name, s)
		must(!c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero() && !c.Resources.Limits.Memory().IsZero(),
			"%s has no request or limit", c.Name)
		_, tag, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/"):], ":")
		must(tag != "" && tag != "latest" || strings.Contains(c.Image, "@sha256:"), "%s: image %s", c.Name, c.Image)
	}
	for _, v := range pod.Volumes {
		must(v.HostPath == nil && (v.EmptyDir == nil || v.EmptyDir.SizeLimit != nil), "volume %s: %+v", v.Name, v)
	}
	router := pod.Containers[0]
	must(router.StartupProbe != nil && router.LivenessProbe.HTTPGet.Path == "/health" && router.ReadinessProbe.HTTPGet.Path == "/ready" &&
		router.ReadinessProbe.FailureThreshold > 1 && router.ReadinessProbe.TimeoutSeconds > 1, "probes: %+v", router)
	must(slices.ContainsFunc(router.Env, func(e corev1.EnvVar) bool {
		return e.Name == "GOMEMLIMIT" && e.ValueFrom.ResourceFieldRef.Resource == "limits.memory"
	}), "there is no GOMEMLIMIT")
	must(pod.Affinity.PodAntiAffinity != nil && len(pod.TopologySpreadConstraints) > 0, "routers may share a node")
	must(pod.ServiceAccountName != "default" && pod.AutomountServiceAccountToken != nil && *pod.AutomountServiceAccountToken == (o["Role "+name] != nil),
		"account %s with a token: %v", pod.ServiceAccountName, pod.AutomountServiceAccountToken)
	if d.Spec.Replicas == nil {
		h := typed[autoscalingv2.HorizontalPodAutoscaler](t, o, "HorizontalPodAutoscaler "+name)
		must(*h.Spec.MinReplicas >= 2 && h.Spec.ScaleTargetRef.Name == name, "%+v", h.Spec)
	}
	selects := func(what string, selector map[string]string) {
		must(len(selector) > 0, "%s selects everything", what)
		for k, v := range selector {
			must(labels[k] == v, "%s selects %s = %s", what, k, v)
		}
	}
	selects("the Deployment", d.Spec.Selector.MatchLabels)
	selects("the PDB", typed[policyv1.PodDisruptionBudget](t, o, "PodDisruptionBudget "+name).Spec.Selector.MatchLabels)
	policy := typed[networkingv1.NetworkPolicy](t, o, "NetworkPolicy "+name).Spec
	selects("the NetworkPolicy", policy.PodSelector.MatchLabels)
	for _, rule := range policy.Ingress {
		must(len(rule.Ports) > 0 && (len(rule.From) > 0 || rule.Ports[0].Port.StrVal == "http"), "the policy lets in all: %+v", rule)
	}
	for service, port := range map[string]string{name: "http", name + "-admin": "admin"} {
		s := typed[corev1.Service](t, o, "Service "+service).Spec
		selects(service, s.Selector)
		must(len(s.Ports) == 1 && s.Ports[0].TargetPort.StrVal == port, "Service %s: %+v", service, s.Ports)
		must(port == "http" || s.Type == corev1.ServiceTypeClusterIP && s.ClusterIP == "None", "the admin port is outside: %+v", s)
	}
	return found
}
