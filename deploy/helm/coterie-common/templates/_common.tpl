{{/* Templates that the charts share. Every template takes the chart's root context unless it says otherwise. */}}

{{- define "coterie.fullname" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "coterie.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "coterie.labels" -}}
{{ include "coterie.selectorLabels" . }}
app.kubernetes.io/part-of: coterie
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "coterie.metadata" -}}
name: {{ include "coterie.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "coterie.labels" . | nindent 2 }}
{{- end -}}

{{- define "coterie.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .tag }}:{{ .tag }}{{ end }}{{ if .digest }}@{{ .digest }}{{ end }}
{{- end -}}
{{- end -}}

{{/* Pod security "restricted", for the pod. */}}
{{- define "coterie.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Pod security "restricted", for a container; nothing can be written but what is mounted. */}}
{{- define "coterie.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The part of a pod's spec that says who runs it and where. */}}
{{- define "coterie.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ include "coterie.fullname" . }}
securityContext:
  {{- include "coterie.podSecurityContext" . | nindent 2 }}
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "coterie.selectorLabels" $ | nindent 8 }}
  {{- end }}
{{- end -}}

{{/* A Java service: how it starts, and the probes of its management port. */}}
{{- define "coterie.javaContainer" -}}
name: {{ trimPrefix "coterie-" .Chart.Name }}
image: {{ include "coterie.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [--spring.config.additional-location=file:/etc/coterie/config/config.yaml]
env:
  # The JVM's heap; the native core, sockets and class data come on top: see resources.
  - name: JDK_JAVA_OPTIONS
    value: {{ join " " (prepend .Values.javaOptions (printf "-Xmx%s" .Values.heap)) | quote }}
  # For what is configured for each pod of a workload by itself.
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
securityContext:
  {{- include "coterie.securityContext" . | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
# Live: the process answers. Ready: it can do its work. A service that cannot, because it is sealed or cannot reach
# another one, is live: restarting it would change nothing.
startupProbe:
  httpGet: {path: /actuator/health/liveness, port: management, scheme: HTTPS}
  periodSeconds: 1
  timeoutSeconds: 3
  failureThreshold: 180
livenessProbe:
  httpGet: {path: /actuator/health/liveness, port: management, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /actuator/health/readiness, port: management, scheme: HTTPS}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 3
{{- end -}}

{{- define "coterie.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "coterie.metadata" . | nindent 2 }}
automountServiceAccountToken: false
{{- end -}}

{{- define "coterie.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "coterie.metadata" . | nindent 2 }}
spec:
  # A service of one pod may be moved: it ends its work in order, and what calls it tries again.
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "coterie.selectorLabels" . | nindent 6 }}
{{- end -}}

{{- define "coterie.serviceMonitor" -}}
{{- if .Values.metrics.serviceMonitor.enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "coterie.metadata" . | nindent 2 }}
    {{- with .Values.metrics.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  # The alerts know targets by this, not by the Service's name, which is that of the release.
  jobLabel: app.kubernetes.io/name
  selector:
    matchLabels:
      {{- include "coterie.selectorLabels" . | nindent 6 }}
  endpoints:
    - port: management
      scheme: https
      path: {{ .Values.metrics.path }}
      interval: {{ .Values.metrics.serviceMonitor.interval }}
      tlsConfig:
        ca:
          secret: {name: {{ .Values.tls.secret }}, key: ca.crt}
        serverName: {{ .Values.tls.serverName | default (include "coterie.fullname" .) }}
      basicAuth:
        username: {name: {{ .Values.metrics.secret }}, key: username}
        password: {name: {{ .Values.metrics.secret }}, key: password}
{{- end -}}
{{- end -}}

{{/* The Service, within the cluster, with the management port beside the public ones; and if they are to be reached
     from outside, another with the public ones alone. Takes {root, ports: [{name, port, nodePort, appProtocol}]}. */}}
{{- define "coterie.services" -}}
{{- $values := .root.Values.service -}}
{{- $external := ne $values.type "ClusterIP" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "coterie.metadata" .root | nindent 2 }}
  {{- if not $external }}
  {{- with $values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
spec:
  type: ClusterIP
  selector:
    {{- include "coterie.selectorLabels" .root | nindent 4 }}
  ports:
    {{- range .ports }}
    - {{ dict "name" .name "port" .port "targetPort" .name | merge (pick . "appProtocol") | toJson }}
    {{- end }}
    - {name: management, port: 9443, targetPort: management}
{{- if $external }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "coterie.fullname" .root }}-external
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "coterie.labels" .root | nindent 4 }}
  {{- with $values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $values.type }}
  {{- if hasKey $values "externalTrafficPolicy" }}
  {{- $keepsAddresses := eq $values.type "LoadBalancer" | ternary "Local" "Cluster" }}
  externalTrafficPolicy: {{ $values.externalTrafficPolicy | default $keepsAddresses }}
  {{- end }}
  selector:
    {{- include "coterie.selectorLabels" .root | nindent 4 }}
  ports:
    {{- range .ports }}
    {{- $port := dict "name" .name "port" .port "targetPort" .name | merge (pick . "appProtocol") }}
    {{- with .nodePort }}{{ $port = set $port "nodePort" (int .) }}{{ end }}
    - {{ toJson $port }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* Address of the database, with its certificate authority if there is a Secret with it. */}}
{{- define "coterie.databaseUrl" -}}
{{- $url := required "database.url is missing" .Values.database.url -}}
{{- if .Values.database.caSecret -}}
{{- $url }}{{ contains "?" $url | ternary "&" "?" }}sslrootcert=/etc/coterie/database-ca/ca.crt
{{- else -}}
{{- if regexMatch "[?&]sslmode=verify-" $url }}
{{- fail "database.url verifies the database's certificate: database.caSecret must name the Secret with its authority" }}
{{- end -}}
{{- $url -}}
{{- end -}}
{{- end -}}

{{/* Rules of a NetworkPolicy. */}}
{{- define "coterie.ingressMetrics" -}}
# Metrics, for Prometheus, which shows a password too; health, for the pod of `helm test`. The kubelet's probes come
# from the node.
- from:
    {{- with .Values.metrics.namespace }}
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ . }}}
    {{- end }}
    - podSelector:
        matchLabels: {coterie.io/test-of: {{ .Release.Name }}}
  ports:
    - {port: management, protocol: TCP}
{{- end -}}

{{- define "coterie.egressDns" -}}
- to:
    - namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ .Values.networkPolicy.dnsNamespace }}}
      podSelector:
        matchLabels:
          {{- toYaml .Values.networkPolicy.dnsPods | nindent 10 }}
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end -}}

{{/* One way out. Takes {peer: {namespace, pods, cidrs}, port}; without namespace and cidrs: pods of this
     namespace. */}}
{{- define "coterie.egressTo" -}}
- to:
    {{- range .peer.cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
    {{- if not .peer.cidrs }}
    - podSelector:
        matchLabels:
          {{- toYaml .peer.pods | nindent 10 }}
      {{- with .peer.namespace }}
      namespaceSelector:
        matchLabels: {kubernetes.io/metadata.name: {{ . }}}
      {{- end }}
    {{- end }}
  ports:
    - {port: {{ .port }}, protocol: TCP}
{{- end -}}

{{- define "coterie.networkPolicy" -}}
{{- if .root.Values.networkPolicy.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "coterie.metadata" .root | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "coterie.selectorLabels" .root | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- include "coterie.ingressMetrics" .root | nindent 4 }}
    {{- with .ingress }}
    {{- . | nindent 4 }}
    {{- end }}
  egress:
    {{- include "coterie.egressDns" .root | nindent 4 }}
    {{- with .egress }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end -}}

{{/* The pod of `helm test`: asks the service whether it is ready, by its name, with the certificate that is
     pinned. */}}
{{- define "coterie.test" -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "coterie.fullname" . }}-test
  namespace: {{ .Release.Namespace }}
  labels:
    coterie.io/test-of: {{ .Release.Name }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    {{- include "coterie.podSecurityContext" . | nindent 4 }}
  containers:
    - name: test
      image: {{ include "coterie.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command:
        - /opt/java/bin/java
        - -Xmx32m
        - -XX:TieredStopAtLevel=1
        - -XX:-UsePerfData
        - -cp
        - {{ printf "app/platform-%s.jar" .Values.image.jarVersion }}
        - io.coterie.platform.health.HealthProbe
      args: ["https://{{ include "coterie.fullname" . }}:9443/actuator/health/readiness", /etc/coterie/tls/ca.crt]
      securityContext:
        {{- include "coterie.securityContext" . | nindent 8 }}
      resources:
        requests: {cpu: 50m, memory: 96Mi}
        limits: {memory: 96Mi}
      volumeMounts:
        - {name: tls, mountPath: /etc/coterie/tls, readOnly: true}
  volumes:
    - name: tls
      secret:
        secretName: {{ .Values.tls.secret }}
        items: [{key: ca.crt, path: ca.crt}]
{{- end -}}
