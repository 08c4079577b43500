/** PersistentVolumeClaim is Kubernetes' own kind, so its form stands here and not in src/danlu/kinds. */
import type { FormSpec } from '../../forms/spec'

export const form: FormSpec = {
  title: { zh: '持久卷', en: 'PersistentVolumeClaim' },
  sections: [
    {
      title: { zh: '基础信息', en: 'Basics' },
      fields: [
        { path: 'metadata.name', widget: 'text', label: { zh: '名称', en: 'Name' }, required: true },
        {
          path: 'spec.resources.requests.storage',
          widget: 'quantity',
          label: { zh: '大小', en: 'Size' },
          required: true,
          default: '1Gi',
          suggestions: ['1Gi', '10Gi', '50Gi', '100Gi'],
        },
        {
          path: 'spec.accessModes.0',
          widget: 'select',
          label: { zh: '访问模式', en: 'Access mode' },
          help: { zh: 'ReadWriteMany 可以被多个节点上的 Pod 同时读写', en: 'ReadWriteMany is read and written by pods of several nodes at once' },
          required: true,
          default: 'ReadWriteMany',
          options: ['ReadWriteMany', 'ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteOncePod'],
        },
        {
          path: 'spec.storageClassName',
          widget: 'select',
          label: { zh: '存储类', en: 'Storage class' },
          help: { zh: '不选则使用集群的默认存储类', en: "Empty: the cluster's default" },
        },
      ],
    },
  ],
}
