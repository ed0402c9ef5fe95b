{{- define "warmpath.selector" -}}
app.kubernetes.io/name: warmpath
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "warmpath.labels" -}}
{{ include "warmpath.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The bytes of a quantity such as 2Gi; a unit that is not here is taken for very much. */ -}}
{{- define "warmpath.bytes" -}}
{{- if kindIs "string" . -}}
{{- $number := regexFind `^[0-9.]+` . -}}
{{- $units := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "_" 1 -}}
{{- $unit := trimPrefix $number . | default "_" -}}
{{- mulf (float64 $number) (get $units $unit | default 1000000000000000) | int64 -}}
{{- else -}}
{{- int64 . -}}
{{- end -}}
{{- end }}

{{- /* Refuses a config with which no pod would get ready, or the system would end it: warmpath check knows the rest. */ -}}
{{- define "warmpath.check" -}}
{{- $config := .Values.config -}}
{{- if not (regexMatch `(?m)^\s*\[\[\s*pools\s*\]\]` $config) -}}
{{- fail "config has no [[pools]]: it must be the whole warmpath.toml, as in values.yaml, or by --set-file config=warmpath.toml" -}}
{{- end -}}
{{- $listen := regexFind `(?m)^\s*listen\s*=\s*["'][^"']*["']` $config -}}
{{- if or (not (regexMatch `:8080["']$` $listen)) (regexMatch `["'](127\.|localhost:|\[::1\])` $listen) -}}
{{- fail (printf "config has %s under [server]: write listen = \":8080\", the port of the Service and of the probes, on all interfaces" (trim $listen | default "no listen")) -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled (not (regexMatch `(?m)^\s*admin\s*=\s*["'][^"']*:9090["']` $config)) -}}
{{- fail "podMonitor scrapes port 9090 of the pods: write admin = \":9090\" under [server] of config" -}}
{{- end -}}
{{- $kv := regexFind `(?ms)^\s*\[kv_cache\].*?(^\s*\[|\z)` $config -}}
{{- $limit := dig "limits" "memory" "" .Values.resources -}}
{{- if and $limit (regexMatch `(?m)^\s*(resp|hyperpod)\s*=\s*["'][^"']` $kv) -}}
{{- $max := regexFind `(?m)^\s*max_bytes\s*=\s*[0-9_]+` $kv | regexFind `[0-9_]+$` | replace "_" "" | default "4294967296" -}}
{{- $need := add (int64 $max) 1073741824 -}}
{{- if lt (int64 (include "warmpath.bytes" $limit)) $need -}}
{{- fail (printf "the KV cache of config takes %s bytes of memory, and resources.limits.memory is %v: write at least %dMi, or a lower [kv_cache] max_bytes" $max $limit (div (add $need 1048575) 1048576)) -}}
{{- end -}}
{{- end -}}
{{- end }}
