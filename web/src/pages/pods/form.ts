/** Pod is Kubernetes' own kind, so its form stands here and not in src/danlu/kinds. */
import type { FieldSpec, FormSpec } from '../../forms/spec'

const container: FieldSpec[] = [
  { path: 'name', widget: 'text', label: { zh: '容器名称', en: 'Container name' }, required: true, default: 'main' },
  { path: 'image', widget: 'text', label: { zh: '镜像', en: 'Image' }, required: true, suggestions: ['busybox', 'python:3.11', 'pytorch/pytorch', 'tensorflow/tensorflow:2.14.0'] },
  { path: 'command', widget: 'command', label: { zh: '运行命令', en: 'Command' } },
  { path: 'args', widget: 'command', label: { zh: '参数', en: 'Arguments' } },
  { path: 'resources.limits.cpu', widget: 'quantity', label: { zh: 'CPU 上限', en: 'CPU limit' } },
  { path: 'resources.limits.memory', widget: 'quantity', label: { zh: '内存上限', en: 'Memory limit' } },
  { path: 'resources.requests.cpu', widget: 'quantity', label: { zh: 'CPU 请求值', en: 'CPU request' } },
  { path: 'resources.requests.memory', widget: 'quantity', label: { zh: '内存请求值', en: 'Memory request' } },
  { path: 'resources.limits', widget: 'devices', label: { zh: 'GPU', en: 'GPUs' } },
  { path: 'workingDir', widget: 'text', label: { zh: '工作目录', en: 'Working directory' } },
  { path: 'env', widget: 'variables', label: { zh: '环境变量', en: 'Environment variables' } },
]

export const form: FormSpec = {
  title: { zh: 'Pod', en: 'Pod' },
  sections: [
    {
      title: { zh: '基础信息', en: 'Basics' },
      fields: [
        { path: 'metadata.name', widget: 'text', label: { zh: '名称', en: 'Name' }, required: true },
        { path: 'spec.restartPolicy', widget: 'select', label: { zh: '重启策略', en: 'Restart policy' }, options: ['Always', 'OnFailure', 'Never'], default: 'Never' },
        { path: 'spec.schedulerName', widget: 'select', label: { zh: '调度器', en: 'Scheduler' }, options: ['default-scheduler', 't9k-scheduler'] },
        {
          path: 'metadata.labels.scheduler\\.tensorstack\\.dev/queue',
          widget: 'text',
          names: 'Queue',
          label: { zh: '队列', en: 'Queue' },
          help: { zh: '仅用于 T9k 调度器', en: 'For the T9k scheduler only' },
        },
        { path: 'spec.volumes', widget: 'volumes', label: { zh: '存储卷', en: 'Volumes' } },
      ],
    },
    { title: { zh: 'Container', en: 'Container' }, each: 'spec.containers', add: { zh: '添加 Container', en: 'Add a container' }, fields: container },
    { title: { zh: 'InitContainer', en: 'InitContainer' }, each: 'spec.initContainers', add: { zh: '添加 InitContainer', en: 'Add an init container' }, fields: container.map((field) => (field.path === 'name' ? { ...field, default: 'init' } : field)) },
  ],
}
