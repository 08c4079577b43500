{{- /* Written by scripts/generate-deploy from src/danlu/operator/install; not to be edited. */ -}}
{{- define "danlu.kinds" -}}
{{- $found := list }}
{{- if .Values.kinds.Notebook }}{{- $found = append $found "Notebook" }}{{- end }}
{{- if .Values.kinds.Project }}{{- $found = append $found "Project" }}{{- end }}
{{- if .Values.kinds.QuotaProfile }}{{- $found = append $found "QuotaProfile" }}{{- end }}
{{- if .Values.kinds.PyTorchJob }}{{- $found = append $found "PyTorchJob" }}{{- end }}
{{- if .Values.kinds.PyTorchTrainingJob }}{{- $found = append $found "PyTorchTrainingJob" }}{{- end }}
{{- if .Values.kinds.TensorBoard }}{{- $found = append $found "TensorBoard" }}{{- end }}
{{- if .Values.kinds.TensorFlowTrainingJob }}{{- $found = append $found "TensorFlowTrainingJob" }}{{- end }}
{{- if .Values.kinds.TensorFlowJob }}{{- $found = append $found "TensorFlowJob" }}{{- end }}
{{- if .Values.kinds.TFJob }}{{- $found = append $found "TFJob" }}{{- end }}
{{- join "," $found }}
{{- end }}
