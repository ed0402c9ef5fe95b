{{- define "warmpath.name" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}
{{- define "warmpath.selector" -}}
app.kubernetes.io/name: warmpath
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "warmpath.labels" -}}
{{ include "warmpath.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
{{- define "warmpath.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "warmpath.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* "true" if config looks for workers in Kubernetes. */ -}}
{{- define "warmpath.discovers" -}}
{{- if regexMatch `(?m)^\s*(\[pools\.kubernetes\]|kubernetes\s*=\s*\{|kubernetes\.(service|selector)\s*=|prefill_service\s*=)` .Values.config }}true{{ end -}}
{{- end }}

{{- /* "true" if config names a Redis by which routers know of each other's requests. */ -}}
{{- define "warmpath.shares" -}}
{{- $history := include "warmpath.table" (list "history" .Values.config) -}}
{{- $named := `(?m)^\s*redis(_url_file)?\s*=\s*["'][^"']` -}}
{{- if not (regexMatch `(?m)^\s*redis\s*=\s*["']off["']` $history) -}}
{{- if or (regexMatch $named $history) (regexMatch $named (include "warmpath.table" (list "cache" .Values.config))) }}true{{ end -}}
{{- end -}}
{{- end }}

{{- /* The text of a table of config: (list NAME CONFIG). */ -}}
{{- define "warmpath.table" -}}
{{- regexFind (printf `(?ms)^\s*\[%s\]\s*(#[^\n]*)?$.*?(^\s*\[|\z)` (index . 0)) (index . 1) -}}
{{- end }}

{{- /* The text that a key has in a part of config: (list KEY TEXT). */ -}}
{{- define "warmpath.text" -}}
{{- regexFind (printf `(?m)^\s*%s\s*=\s*["'][^"']*` (index . 0)) (index . 1) | regexFind `[^"']*$` -}}
{{- end }}

{{- /* The milliseconds of a duration such as 1m30s; it has no other units than these. */ -}}
{{- define "warmpath.milliseconds" -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll `[0-9.]+(ms|s|m|h)` . -1 -}}
{{- $number := regexFind `^[0-9.]+` . -}}
{{- $sum = addf $sum (mulf (float64 $number) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (trimPrefix $number .))) -}}
{{- end -}}
{{- int64 $sum -}}
{{- end }}

{{- /* A quantity such as 2Gi or 500m, in thousandths; a unit that is not here is taken for very much. */ -}}
{{- define "warmpath.thousandths" -}}
{{- $number := regexFind `^[0-9.]+` (toString .) -}}
{{- $units := dict "m" 1 "Ki" 1024e3 "Mi" 1048576e3 "Gi" 1073741824e3 "Ti" 1099511627776e3 "k" 1e6 "M" 1e9 "G" 1e12 "T" 1e15 "_" 1e3 -}}
{{- $unit := trimPrefix $number (toString .) | default "_" -}}
{{- mulf (float64 $number) (get $units $unit | default 1e18) | int64 -}}
{{- end }}

{{- /* "true" if the admin port can be reached from other pods. */ -}}
{{- define "warmpath.admin" -}}
{{- if regexMatch `^(0\.0\.0\.0|\[::\])?:9090$` (include "warmpath.text" (list "admin" (include "warmpath.table" (list "server" .Values.config)))) }}true{{ end -}}
{{- end }}

{{- define "warmpath.probe" -}}
httpGet:
  path: {{ index . 1 }}
  port: http
  {{- with (index . 2).Values.probeScheme }}
  scheme: {{ . }}
  {{- end }}
{{ toYaml (index . 0) }}
{{- end }}
