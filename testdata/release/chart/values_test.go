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
	served  = "[server]\nlisten = \":8080\"\n"
	pools   = "[[pools]]\n[[pools.workers]]\nurl = \"http://vllm:8000\"\n"
	stated  = "state_file = \"/var/lib/warmpath/state\"\n"
	shared  = "[history]\nredis = \"redis://a:6379\"\n"
	claimed = "extraVolumes[0].name=data,extraVolumes[0].persistentVolumeClaim.claimName=data,extraVolumeMounts[0].name=data,extraVolumeMounts[0].mountPath=/data"
	kv64    = "[kv_cache]\nresp = \":6380\"\nmax_bytes = 68_719_476_736 # 64 GiB\n"
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
		"half a digest":                 {set(t, "image.digest=sha256:0f4c"), "digest"},
		"no configuration":              {set(t, "config=nonsense"), "config has no [[pools]]"},
		"loopback":                      {set(t, "", "[server]\nlisten = \"127.0.0.1:8080\"\n"+pools), `config has listen = "127.0.0.1:8080"`},
		"the default of listen":         {set(t, "", pools), "config has no listen"},
		"another port":                  {set(t, "", "[server]\nlisten = \":80\"\n"+pools), `config has listen = ":80"`},
		"a monitor without a port":      {set(t, "podMonitor.enabled=true", served+pools), `write admin = ":9090"`},
		"the KV cache, limit":           {set(t, "", served+kv64+pools), "resources.limits.memory is 2Gi: write at least 66560Mi"},
		"its default, limit":            {set(t, "", served+"[kv_cache]\nhyperpod = \":9200\"\n"+pools), "takes 4294967296 bytes"},
		"a limit a little too low":      {set(t, "resources.limits.memory=66559Mi", served+kv64+pools), "66559Mi"},
		"a limit in bytes":              {set(t, "resources.limits.memory=2147483648", served+kv64+pools), "at least 66560Mi"},

		"no image":                {set(t, "image.repository="), "image.repository is empty"},
		"the latest image":        {set(t, "image.tag=latest"), "image.tag is latest"},
		"a tag in the name":       {set(t, "image.repository=ghcr.io/acme/warmpath:v1"), "has a tag or a digest in it"},
		"a long drain":            {set(t, "", served+"drain_delay = \"10s\"\ndrain_timeout = \"5m\"\n"+pools), "take 310 s together, and terminationGracePeriodSeconds is 80: open streams would be cut; write at least 320"},
		"the default of a drain":  {set(t, "terminationGracePeriodSeconds=30", served+pools), "take 30 s together"},
		"TLS, plain probes":       {set(t, "", served+"tls_cert_file = \"/tls/tls.crt\"\n"+pools), "set probeScheme to HTTPS"},
		"probes alone by TLS":     {set(t, "probeScheme=HTTPS", served+"[history]\ntls_cert_file = \"/tls/tls.crt\"\n"+pools), "no tls_cert_file under [server]"},
		"a state file, no volume": {set(t, "", served+"state_file = \"/var/lib/warmpath/state\"\n"+pools), "set state.enabled"},
		"a log on the root":       {set(t, "", served+"access_log = \"/var/log/access.json\"\n"+pools), `access_log = "/var/log/access.json" of config is on the read-only root`},
		"a log beside the file":   {set(t, "", served+"access_log = \"access.json\"\n"+pools), "is on the read-only root"},
		"a folder that is mounted to be read": {set(t, "extraVolumes[0].name=a,extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/spill,extraVolumeMounts[0].readOnly=true",
			served+"[kv_cache]\nspill_dir = \"/spill/kv\"\n"+pools), "spill_dir"},
		"a folder with a like name":  {set(t, "", served+"access_log = \"/tmpfs/access.json\"\n"+pools), "is on the read-only root"},
		"one volume, two routers":    {set(t, "state.enabled=true", served+stated+pools), "state.enabled is for one router"},
		"one volume, an autoscaler":  {set(t, "state.enabled=true,replicas=1,autoscaling.enabled=true", served+stated+shared+pools), "state.enabled is for one router"},
		"a volume for nothing":       {set(t, "state.enabled=true,replicas=1", served+pools), "makes a volume that config does not use"},
		"an autoscaler alone":        {set(t, "autoscaling.enabled=true"), "config has no [history] redis"},
		"history turned off":         {set(t, "autoscaling.enabled=true", served+"[history]\nredis = \"off\"\n[cache]\nredis = \"redis://a:6379\"\n"+pools), "config has no [history] redis"},
		"a Redis of the KV cache":    {set(t, "autoscaling.enabled=true", served+"[kv_cache.l2]\nurl = \"redis://a:6379\"\n# redis = \"redis://a\"\n"+pools), "config has no [history] redis"},
		"more at least than at most": {set(t, "autoscaling.enabled=true,autoscaling.minReplicas=9", served+shared+pools), "minReplicas 9 is above maxReplicas 6"},
		"no CPU to count by":         {set(t, "autoscaling.enabled=true,resources.requests.cpu=null", served+shared+pools), "resources.requests.cpu"},
		"nobody may go":              {set(t, "podDisruptionBudget.maxUnavailable=0"), "lets none of 2 routers go"},
		"all must stay":              {set(t, "podDisruptionBudget.minAvailable=2"), "lets none of 2 routers go"},
		"all of one":                 {set(t, "podDisruptionBudget.minAvailable=100%"), "no node could be drained"},
		"admin to the outside":       {set(t, "adminService.type=LoadBalancer"), "kubectl port-forward"},
		"an Ingress to admin":        {set(t, "ingress.enabled=true,ingress.port=admin,ingress.hosts[0].host=a"), "the admin port stays in the cluster"},
		"and by number":              {set(t, "ingress.enabled=true,ingress.port=9090,ingress.hosts[0].host=a"), "the admin port stays in the cluster"},
		"an Ingress for nobody":      {set(t, "ingress.enabled=true"), "without ingress.hosts"},
		"Prometheus kept out":        {set(t, "podMonitor.enabled=true"), "networkPolicy lets nobody reach the admin port"},
		"all may scrape":             {set(t, "networkPolicy.admin[0].ipBlock.cidr=0.0.0.0/0"), "lets everybody reach the admin port"},
		"workers kept out":           {set(t, "resources.limits.memory=65Gi", served+kv64+pools), `resp = ":6380" of config is for workers`},
		"their events kept out":      {set(t, "", served+"kv_events_listen = \"tcp://0.0.0.0:5557\"\n"+pools), "[{ports: [{port: 5557}]"},

		"a unit of its own":           {set(t, "resources.limits.memory=2GB"), "/resources/limits/memory"},
		"more than the limit":         {set(t, "resources.requests.memory=4Gi"), "requests.memory 4Gi is above resources.limits.memory 2Gi"},
		"in other units":              {set(t, "resources.requests.cpu=2,resources.limits.cpu=1900m"), "requests.cpu 2 is above resources.limits.cpu 1900m"},
		"root, and not":               {set(t, "podSecurityContext.runAsUser=0"), "runAsUser 0 beside runAsNonRoot"},
		"a budget of nothing":         {set(t, "podDisruptionBudget.maxUnavailable=null"), "has neither maxUnavailable nor minAvailable"},
		"an account of all":           {set(t, "serviceAccount.create=false"), "serviceAccount.create is false without serviceAccount.name"},
		"a mount of no volume":        {set(t, "extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/a"), "mounts the volume a, which extraVolumes does not have"},
		"a mount over another":        {set(t, "extraVolumeMounts[0].name=tmp,extraVolumeMounts[0].mountPath=/etc/warmpath/"), "mounts /etc/warmpath/ a second time"},
		"a claim for nothing":         {set(t, "state.existingClaim=a"), "no effect without state.enabled"},
		"admin without a token":       {set(t, "", served+"admin = \":9090\"\n"+pools), "no admin_token_file"},
		"admin elsewhere":             {set(t, "", served+"admin = \":9191\"\n"+pools), `admin = ":9191" of config is not the port`},
		"bodies beyond /tmp":          {set(t, "", served+"overflow_bytes = 8_000_000_000\n"+pools), "more than the 2Gi of /tmp"},
		"no variable":                 {set(t, "extraEnv[0].name=TEAM", served+"[[keys]]\nname = \"a\"\nenv = \"TEAM_A\"\n"+pools), `env = "TEAM_A" of config is no variable`},
		"no file":                     {set(t, "", served+"[[keys]]\nname = \"a\"\nfile = \"/keys/a\"\n"+pools), `file = "/keys/a" of config is in no volume`},
		"a number in the environment": {set(t, "extraEnv[0].name=A,extraEnv[0].value=1"), "/extraEnv/0/value"},
		"a volume twice":              {set(t, "extraVolumes[0].name=tmp"), "a second volume tmp"},
		"a claim for two":             {set(t, claimed, served+"state_file = \"/data/state\"\n"+pools), `state_file = "/data/state" of config is on one claim for several routers`},
		"a log of two":                {set(t, claimed, served+"access_log = \"/data/access.json\"\n"+pools), "which would write over each other"},
		"no names":                    {set(t, "networkPolicy.egress[0].ports[0].port=8000", served+pools), "lets no DNS through"},
		"no API server":               {set(t, "networkPolicy.egress[0].ports[0].port=53"), "keeps the pods from the API server"},
	} {
		_, err := render(t, "warmpath", image(c.values, "registry.example.com/warmpath"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, c.want)
		}
	}
	const in = ",networkPolicy.ingress[0].ports[0].port=6380"
	for name, values := range map[string]map[string]any{
		"the KV cache with room":    set(t, "resources.limits.memory=65Gi"+in, served+kv64+pools),
		"in decimal units":          set(t, "resources.limits.memory=70G"+in, served+kv64+pools),
		"no limit":                  set(t, "resources.limits.memory=null"+in, served+kv64+pools),
		"a cache without a port":    set(t, "", served+"[kv_cache]\nmax_bytes = 68719476736\n"+pools),
		"another table's max_bytes": set(t, "", served+"[cache]\nmax_bytes = 68719476736\n"+pools),
		"of a chart around it":      set(t, "global.registry=x"),
		"a port on loopback":        set(t, "", served+"kv_events_listen = \"tcp://127.0.0.1:5557\"\n"+pools),
		"no policy":                 set(t, "networkPolicy.enabled=false,podMonitor.enabled=true"),
		"a tenth of a second":       set(t, "terminationGracePeriodSeconds=61", served+"drain_delay = \"900ms\"\ndrain_timeout = \"1m\"\n"+pools),
		"a log on a volume":         set(t, "extraVolumes[0].name=a,extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/var/log/", served+"access_log = \"/var/log/access.json\"\n"+pools),
		"a root to write on":        set(t, "securityContext.readOnlyRootFilesystem=false", served+"access_log = \"/var/log/access.json\"\n"+pools),
		"a budget of one router":    set(t, "replicas=1"),
		"a claim for one":           set(t, "replicas=1,"+claimed, served+"state_file = \"/data/state\"\n"+pools),
		"egress to one host":        set(t, "networkPolicy.egress[0].to[0].ipBlock.cidr=10.0.0.0/8"),
		"admin on loopback":         set(t, "", served+"admin = \"127.0.0.1:9090\"\n"+pools),
		"an account without rights": set(t, "serviceAccount.create=false", served+pools),
		"authorities of the image":  set(t, "", served+"[cache]\ntls_ca_file = \"/etc/ssl/certs/ca-certificates.crt\"\n"+pools),
		"a file in a comment":       set(t, "", served+"# file = \"/keys/a\"\n# env = \"A\"\n"+pools),
		"no resources":              set(t, "resources=null"),
		"no budget":                 set(t, "podDisruptionBudget.enabled=false,podDisruptionBudget.maxUnavailable=0"),
	} {
		if _, err := render(t, "warmpath", image(values, "registry.example.com/warmpath")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOptions: objects that a value turns on, and fields that it sets.
func TestOptions(t *testing.T) {
	o := rendered(t, "edge", set(t, "image.repository=a,restartOnChange=true,networkPolicy.admin[0].podSelector.matchLabels.app=prometheus,"+
		"podMonitor.enabled=true,podMonitor.labels.release=stack,service.type=LoadBalancer,service.annotations.a=b,"+
		"podAnnotations.note=x,affinity.nodeAffinity.y=z,extraEnv[0].name=GOMEMLIMIT,extraEnv[0].value=1GiB"))
	if text := jsonOf(t, o["Deployment edge"]); strings.Count(text, "GOMEMLIMIT") != 1 {
		t.Errorf("GOMEMLIMIT stands twice: %s", text)
	}
	if o := rendered(t, "edge", set(t, "image.repository=a", served+"admin = \"127.0.0.1:9090\"\n"+pools)); o["Service edge-admin"] != nil {
		t.Error("a Service leads to loopback")
	}
	for object, wants := range map[string][]string{
		"NetworkPolicy edge": {"podSelector:{matchLabels:{app.kubernetes.io/instance:edge,", "ingress:[{ports:[{port:http}]},{from:[{podSelector:{matchLabels:{app:prometheus}}}],ports:[{port:admin}]}]"},
		"PodMonitor edge":    {"release:stack", "authorization:{credentials:{key:token,name:warmpath-admin}}", "path:/metrics,port:admin", "jobLabel:app.kubernetes.io/name"},
		"Service edge":       {"type:LoadBalancer", "annotations:{a:b}", "ports:[{name:http,port:80,targetPort:http}]"},
		"Service edge-admin": {"clusterIP:None", "ports:[{name:admin,port:9090,targetPort:admin}]"},
		"Deployment edge":    {"note:x", "affinity:{nodeAffinity:{y:z},podAntiAffinity:{", "checksum/config:"},
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
		files, err := render(t, "warmpath", image(values, "a"))
		if err != nil {
			t.Fatal(err)
		}
		return files["warmpath/templates/NOTES.txt"]
	}
	const alone = "The 2 routers share nothing"
	if text := notes(map[string]any{}); !strings.Contains(text, alone) || !strings.Contains(text, "create secret generic warmpath-admin -n fleet") {
		t.Errorf("the notes of the default values:\n%s", text)
	}
	for name, values := range map[string]map[string]any{
		"one router": set(t, "replicas=1"),
		"a Redis":    set(t, "", served+"[history]\nredis = \"redis://cache:6379/0\"\n"+pools),
		"its file":   set(t, "", served+"[cache]\nredis_url_file = \"/var/run/secrets/redis/url\"\n"+pools),
	} {
		if text := notes(values); strings.Contains(text, "share nothing") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if text := notes(set(t, "", served+"[cache]\nredis = \"\"\n"+pools)); !strings.Contains(text, alone) {
		t.Errorf("a Redis without a name counts as one:\n%s", text)
	}
}
