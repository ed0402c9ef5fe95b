{{- /* Refuses values that contradict each other, and a config with which no pod would get ready, or the system would end it: warmpath
check knows the rest. */ -}}
{{- define "warmpath.check" -}}
{{- $config := .Values.config -}}
{{- $resources := .Values.resources | default dict -}}
{{- $server := include "warmpath.table" (list "server" $config) -}}
{{- if not (regexMatch `(?m)^\s*\[\[\s*pools\s*\]\]` $config) -}}
{{- fail "config has no [[pools]]: it must be the whole warmpath.toml, as in values.yaml, or by --set-file config=warmpath.toml" -}}
{{- end -}}
{{- $listen := regexFind `(?m)^\s*listen\s*=\s*["'][^"']*["']` $server -}}
{{- if or (not (regexMatch `:8080["']$` $listen)) (regexMatch `["'](127\.|localhost:|\[::1\])` $listen) -}}
{{- fail (printf "config has %s under [server]: write listen = \":8080\", the port of the Service and of the probes, on all interfaces" (trim $listen | default "no listen")) -}}
{{- end -}}

{{- /* the image */ -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is empty: push the image that make image writes to a registry, and name it here" -}}
{{- end -}}
{{- if eq .Values.image.tag "latest" -}}
{{- fail "image.tag is latest, which is another image tomorrow: name a release, or image.digest" -}}
{{- end -}}
{{- if regexMatch `(@|:[^/]*$)` .Values.image.repository -}}
{{- fail (printf "image.repository %s has a tag or a digest in it: write that in image.tag or image.digest" .Values.image.repository) -}}
{{- end -}}

{{- /* what a pod has time and room for */ -}}
{{- $drain := add (include "warmpath.milliseconds" (include "warmpath.text" (list "drain_delay" $server) | default "0s")) (include "warmpath.milliseconds" (include "warmpath.text" (list "drain_timeout" $server) | default "30s")) -}}
{{- if ge $drain (mul 1000 .Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "drain_delay and drain_timeout of config take %d s together, and terminationGracePeriodSeconds is %d: open streams would be cut; write at least %d" (div (add $drain 999) 1000) (int .Values.terminationGracePeriodSeconds) (add 10 (div (add $drain 999) 1000))) -}}
{{- end -}}
{{- $tls := include "warmpath.text" (list "tls_cert_file" $server) -}}
{{- if and $tls (ne .Values.probeScheme "HTTPS") -}}
{{- fail "config has tls_cert_file under [server], and the probes would ask without TLS: set probeScheme to HTTPS" -}}
{{- end -}}
{{- if and (not $tls) (eq .Values.probeScheme "HTTPS") -}}
{{- fail "probeScheme is HTTPS, and config has no tls_cert_file under [server]: no probe would succeed" -}}
{{- end -}}
{{- $writable := list "/tmp/" "/var/cache/warmpath/" -}}
{{- if .Values.state.enabled -}}
{{- $writable = append $writable "/var/lib/warmpath/" -}}
{{- end -}}
{{- $mounted := concat $writable (list "/etc/warmpath/" "/etc/warmpath-admin/") -}}
{{- $several := or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}
{{- $volumes := list "config" "admin" "cache" "tmp" "state" -}}
{{- $claims := list -}}
{{- range .Values.extraVolumes -}}
{{- if has .name $volumes -}}
{{- fail (printf "extraVolumes has a second volume %s: the chart has one, or it stands there twice" .name) -}}
{{- end -}}
{{- $volumes = append $volumes .name -}}
{{- if .persistentVolumeClaim -}}
{{- $claims = append $claims .name -}}
{{- end -}}
{{- end -}}
{{- $shared := list -}}
{{- range .Values.extraVolumeMounts -}}
{{- $folder := printf "%s/" (trimSuffix "/" .mountPath) -}}
{{- if not (has .name $volumes) -}}
{{- fail (printf "extraVolumeMounts mounts the volume %s, which extraVolumes does not have" .name) -}}
{{- end -}}
{{- if has $folder $mounted -}}
{{- fail (printf "extraVolumeMounts mounts %s a second time: choose another folder" .mountPath) -}}
{{- end -}}
{{- $mounted = append $mounted $folder -}}
{{- if not .readOnly -}}
{{- $writable = append $writable $folder -}}
{{- if and $several (has .name $claims) -}}
{{- $shared = append $shared $folder -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range regexFindAll `(?m)^\s*[a-z_]*file\s*=\s*["']/[^"']*` $config -1 -}}
{{- $key := regexFind `[a-z_]*file` . -}}
{{- $path := regexFind `/.*` . -}}
{{- $there := or (eq $key "state_file") (hasPrefix "/etc/ssl/" $path) (hasPrefix "/var/run/secrets/" $path) -}}
{{- range $mounted -}}
{{- $there = or $there (hasPrefix . $path) -}}
{{- end -}}
{{- if not $there -}}
{{- fail (printf "%s = %q of config is in no volume: mount its Secret by extraVolumes and extraVolumeMounts" $key $path) -}}
{{- end -}}
{{- end -}}
{{- $known := list -}}
{{- range .Values.extraEnv -}}
{{- $known = append $known .name -}}
{{- end -}}
{{- range regexFindAll `(?m)^\s*env\s*=\s*["'][^"']+` $config -1 -}}
{{- $name := regexFind `[^"']+$` . -}}
{{- if not (has $name $known) -}}
{{- fail (printf "env = %q of config is no variable of the pods: take it from its Secret in extraEnv" $name) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "state_file" "access_log" "overflow_dir" "module_cache" "spill_dir" "strategies_dir" -}}
{{- $path := include "warmpath.text" (list $key $config) -}}
{{- $fits := or (has $path (list "" "stdout" "stderr" "off")) (not $.Values.securityContext.readOnlyRootFilesystem) -}}
{{- range ternary $mounted $writable (eq $key "strategies_dir") -}}
{{- $fits = or $fits (hasPrefix . (printf "%s/" $path)) -}}
{{- end -}}
{{- range $shared -}}
{{- if and (hasPrefix . (printf "%s/" $path)) (ne $key "strategies_dir") -}}
{{- fail (printf "%s = %q of config is on one claim for several routers, which would write over each other: set replicas to 1, or give each a volume of its own (ephemeral.volumeClaimTemplate)%s" $key $path (ternary "; what they know they share by [history] redis" "" (eq $key "state_file"))) -}}
{{- end -}}
{{- end -}}
{{- if not $fits -}}
{{- fail (printf "%s = %q of config is on the read-only root of the container: %s" $key $path (ternary "set state.enabled, and write state_file = \"/var/lib/warmpath/state\"" "mount a volume there by extraVolumes and extraVolumeMounts" (eq $key "state_file"))) -}}
{{- end -}}
{{- end -}}
{{- $overflow := regexFind `(?m)^\s*overflow_bytes\s*=\s*[0-9_]+` $server | regexFind `[0-9_]+$` | replace "_" "" -}}
{{- if and $overflow (gt (int64 $overflow) 2147483648) (not (include "warmpath.text" (list "overflow_dir" $server))) -}}
{{- fail (printf "overflow_bytes = %s of config is more than the 2Gi of /tmp, and the pod would be evicted: mount a volume by extraVolumes, and name it in overflow_dir" $overflow) -}}
{{- end -}}
{{- if and .Values.podSecurityContext.runAsNonRoot (eq (toString .Values.podSecurityContext.runAsUser) "0") -}}
{{- fail "podSecurityContext has runAsUser 0 beside runAsNonRoot: no container would start" -}}
{{- end -}}
{{- range $name := list "cpu" "memory" "ephemeral-storage" -}}
{{- $request := dig "requests" $name "" $resources -}}
{{- $most := dig "limits" $name "" $resources -}}
{{- if and $request $most (gt (int64 (include "warmpath.thousandths" $request)) (int64 (include "warmpath.thousandths" $most))) -}}
{{- fail (printf "resources.requests.%s %v is above resources.limits.%s %v" $name $request $name $most) -}}
{{- end -}}
{{- end -}}
{{- $kv := include "warmpath.table" (list "kv_cache" $config) -}}
{{- $limit := dig "limits" "memory" "" $resources -}}
{{- if and $limit (regexMatch `(?m)^\s*(resp|hyperpod)\s*=\s*["'][^"']` $kv) -}}
{{- $max := regexFind `(?m)^\s*max_bytes\s*=\s*[0-9_]+` $kv | regexFind `[0-9_]+$` | replace "_" "" | default "4294967296" -}}
{{- $need := add (int64 $max) 1073741824 -}}
{{- if lt (int64 (include "warmpath.thousandths" $limit)) (mul 1000 $need) -}}
{{- fail (printf "the KV cache of config takes %s bytes of memory, and resources.limits.memory is %v: write at least %dMi, or a lower [kv_cache] max_bytes" $max $limit (div (add $need 1048575) 1048576)) -}}
{{- end -}}
{{- end -}}

{{- /* several routers */ -}}
{{- if and .Values.state.existingClaim (not .Values.state.enabled) -}}
{{- fail "state.existingClaim has no effect without state.enabled" -}}
{{- end -}}
{{- if .Values.state.enabled -}}
{{- if $several -}}
{{- fail "state.enabled is for one router, as its volume is mounted by one pod: set replicas to 1 without autoscaling, or let the routers share what they know by [history] redis, which a restart outlives too" -}}
{{- end -}}
{{- if not (hasPrefix "/var/lib/warmpath/" (include "warmpath.text" (list "state_file" $server))) -}}
{{- fail "state.enabled makes a volume that config does not use: write state_file = \"/var/lib/warmpath/state\" under [server]" -}}
{{- end -}}
{{- end -}}
{{- with .Values.autoscaling -}}
{{- if .enabled -}}
{{- if not (include "warmpath.shares" $) -}}
{{- fail "autoscaling.enabled, and config has no [history] redis: a new router would know nothing of the workers' caches, and each scaling would cost what it was to save" -}}
{{- end -}}
{{- if gt (int .minReplicas) (int .maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas %d is above maxReplicas %d" (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if not (dig "requests" "cpu" "" $resources) -}}
{{- fail "autoscaling counts in parts of resources.requests.cpu, which is not set" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- if and .enabled (has (toString .maxUnavailable) (list "" "<nil>")) (eq (toString .minAvailable) "") -}}
{{- fail "podDisruptionBudget has neither maxUnavailable nor minAvailable: write maxUnavailable: 1" -}}
{{- end -}}
{{- $least := ternary (int $.Values.autoscaling.minReplicas) (int $.Values.replicas) $.Values.autoscaling.enabled -}}
{{- if and .enabled (or (and (ne (toString .minAvailable) "") (or (eq (toString .minAvailable) "100%") (and (not (contains "%" (toString .minAvailable))) (ge (int .minAvailable) $least)))) (and (eq (toString .minAvailable) "") (has (toString .maxUnavailable) (list "0" "0%")))) -}}
{{- fail (printf "podDisruptionBudget lets none of %d routers go: no node could be drained; write maxUnavailable: 1" $least) -}}
{{- end -}}
{{- end -}}

{{- /* who reaches what */ -}}
{{- if ne .Values.adminService.type "ClusterIP" -}}
{{- fail (printf "adminService.type is %s: the admin port drains, reloads and changes strategies, and stays in the cluster; from outside use kubectl port-forward" .Values.adminService.type) -}}
{{- end -}}
{{- if .Values.ingress.enabled -}}
{{- if ne (toString .Values.ingress.port) "http" -}}
{{- fail (printf "ingress.port is %v: an Ingress leads to the clients' port http alone; the admin port stays in the cluster, and kubectl port-forward reaches it" .Values.ingress.port) -}}
{{- end -}}
{{- if not .Values.ingress.hosts -}}
{{- fail "ingress.enabled without ingress.hosts: write [{host: llm.example.com}]" -}}
{{- end -}}
{{- end -}}
{{- $admin := include "warmpath.text" (list "admin" $server) -}}
{{- $open := include "warmpath.admin" . -}}
{{- if and $admin (not $open) (not (regexMatch `^(127\.|localhost:|\[::1\])` $admin)) -}}
{{- fail (printf "admin = %q of config is not the port of the admin Service: write \":9090\", or \"127.0.0.1:9090\" for kubectl port-forward alone" $admin) -}}
{{- end -}}
{{- if and $open (not (include "warmpath.text" (list "admin_token_file" $server))) -}}
{{- fail "config has no admin_token_file under [server], without which no daemon opens its admin port to others: write \"/etc/warmpath-admin/token\"" -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) (include "warmpath.discovers" .) -}}
{{- fail "serviceAccount.create is false without serviceAccount.name: the right to discover workers would go to the account default, which every pod has" -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled (not $open) -}}
{{- fail "podMonitor scrapes port 9090 of the pods: write admin = \":9090\" under [server] of config" -}}
{{- end -}}
{{- with .Values.networkPolicy -}}
{{- if .enabled -}}
{{- if and $.Values.podMonitor.enabled (not .admin) -}}
{{- fail "networkPolicy lets nobody reach the admin port, and podMonitor has Prometheus scrape it: write who it is in networkPolicy.admin, as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]" -}}
{{- end -}}
{{- range .admin -}}
{{- if or (not .) (has (dig "ipBlock" "cidr" "" .) (list "0.0.0.0/0" "::/0")) -}}
{{- fail "networkPolicy.admin lets everybody reach the admin port: name Prometheus alone" -}}
{{- end -}}
{{- end -}}
{{- if .egress -}}
{{- $out := list -}}
{{- range .egress -}}
{{- range .ports | default (list (dict "port" "any")) -}}
{{- $out = append $out (toString .port) -}}
{{- end -}}
{{- end -}}
{{- if not (or (has "53" $out) (has "any" $out)) -}}
{{- fail "networkPolicy.egress lets no DNS through, and no name would be found: add {ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}" -}}
{{- end -}}
{{- if and (include "warmpath.discovers" $) (not (or (has "443" $out) (has "6443" $out) (has "any" $out))) -}}
{{- fail "networkPolicy.egress keeps the pods from the API server, and config looks for workers there: add {ports: [{port: 443}, {port: 6443}]}" -}}
{{- end -}}
{{- end -}}
{{- if not .ingress -}}
{{- range $key := list "kv_events_listen" "resp" "pull" "coordinator" -}}
{{- $at := include "warmpath.text" (list $key $config) | trimPrefix "tcp://" -}}
{{- if and $at (not (regexMatch `^(127\.|localhost:|\[::1\])` $at)) -}}
{{- fail (printf "%s = %q of config is for workers, and networkPolicy lets none of them in: write a rule for the port in networkPolicy.ingress, as [{ports: [{port: %s}], from: [{podSelector: {matchLabels: {app: vllm}}}]}]" $key $at (regexFind `[0-9]+$` $at)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
