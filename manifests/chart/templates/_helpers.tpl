{{/*
The labels of every object. Selectors have only app.kubernetes.io/name, as in manifests/base: they are
immutable, and so no upgrade may change them.
*/}}
{{- define "rdma-webhook.labels" -}}
app.kubernetes.io/name: rdma-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: rdma-webhook
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The metadata of an object in the release's namespace, after its name. */}}
{{- define "rdma-webhook.metadata" -}}
namespace: {{ .Release.Namespace | quote }}
labels:
  {{- include "rdma-webhook.labels" . | nindent 2 }}
{{- with .Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "rdma-webhook.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Where the pods of a Deployment run, and with which Secrets their image is pulled. */}}
{{- define "rdma-webhook.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* The security context of the pods of a Deployment. */}}
{{- define "rdma-webhook.user" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/*
The objects of a file in files/, which has copies of manifests/ (`make golden` copies them). They get the
release's namespace, the excluded namespaces, and the chart's labels. A dictionary has the arguments:
  context      the chart's .
  file         its path in files/
  replace      texts of the file → the texts that replace them, since a value says so
  labels, annotations  further ones of these objects
A text that the file does not contain is an error, so that no value can lose its effect.
*/}}
{{- define "rdma-webhook.objects" -}}
{{- $context := .context }}
{{- $text := $context.Files.Get (printf "files/%s" .file) | required (printf "the chart lacks files/%s" .file) }}
{{- range $old, $new := .replace }}
{{- if not (contains $old $text) }}{{ fail (printf "files/%s does not contain %q" $.file $old) }}{{ end }}
{{- $text = replace $old $new $text }}
{{- end }}
{{- $namespace := toJson $context.Release.Namespace }}
{{- $text = replace "namespace: rdma-webhook\n" (printf "namespace: %s\n" $namespace) $text }}
{{- $excluded := prepend $context.Values.excludedNamespaces $context.Release.Namespace | uniq | toJson }}
{{- $text = replace "[rdma-webhook, kube-system, kube-public, kube-node-lease]" $excluded $text }}
{{- $labels := include "rdma-webhook.labels" $context | fromYaml | merge (.labels | default dict) }}
{{- $annotations := merge dict (.annotations | default dict) $context.Values.annotations }}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- $metadata := $object.metadata }}
{{- $_ := set $metadata "labels" (merge dict $labels (get $metadata "labels" | default dict)) }}
{{- with merge dict $annotations (get $metadata "annotations" | default dict) }}
{{- $_ := set $metadata "annotations" . }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
