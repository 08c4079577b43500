import { defineWords } from '../i18n/words'

export const words = defineWords({
  takeOver: { zh: '应用到表单', en: 'Take over into the form' },
  defaultScheduler: { zh: '默认调度器', en: 'Default scheduler' },
  t9kScheduler: { zh: 'T9k 调度器', en: 'T9k scheduler' },
  queue: { zh: '队列', en: 'Queue' },
  priority: { zh: '优先级', en: 'Priority' },
  priorityHelp: { zh: '0 到 100，越大越先得到资源', en: '0 to 100; the highest is served first' },
  template: { zh: '模板', en: 'Template' },
  byHand: { zh: '自定义', en: 'By hand' },
  requests: { zh: '资源请求值', en: 'Requests' },
  limits: { zh: '资源约束值', en: 'Limits' },
  fitted: { zh: '已按本集群最大的节点调小', en: 'Made smaller, to fit the largest node of this cluster' },
  small: { zh: '适合写代码和小数据', en: 'For writing code and small data' },
  medium: { zh: '适合一般的训练', en: 'For ordinary training' },
  large: { zh: '适合较大的模型和数据', en: 'For larger models and data' },
  largeGpu: { zh: '与 large 相同，另有一块 NVIDIA GPU', en: 'Like large, with one NVIDIA GPU' },
  cpuRequest: { zh: 'CPU 请求值', en: 'CPU request' },
  cpuLimit: { zh: 'CPU 上限', en: 'CPU limit' },
  memoryRequest: { zh: '内存请求值', en: 'Memory request' },
  memoryLimit: { zh: '内存上限', en: 'Memory limit' },
  gpus: { zh: 'GPU 数量', en: 'GPUs' },
})
