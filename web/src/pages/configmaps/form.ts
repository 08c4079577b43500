/** ConfigMap is Kubernetes' own kind, so its form stands here and not in src/danlu/kinds. */
import type { FormSpec } from '../../forms/spec'

export const form: FormSpec = {
  title: { zh: 'ConfigMap', en: 'ConfigMap' },
  sections: [
    {
      title: { zh: '基础信息', en: 'Basics' },
      fields: [
        { path: 'metadata.name', widget: 'text', label: { zh: '名称', en: 'Name' }, required: true },
        { path: 'metadata.labels', widget: 'labels', label: { zh: '标签', en: 'Labels' } },
        { path: 'data', widget: 'labels', label: { zh: '数据', en: 'Data' } },
      ],
    },
  ],
}
