import { defineWords } from '../../i18n/words'

export const words = defineWords({
  noQuota: { zh: '无配额', en: 'No quota' },
  work: { zh: '队列中的工作', en: 'Work in the queue' },
  minMember: { zh: '最少 Pod 数', en: 'Pods at least' },
  priority: { zh: '优先级', en: 'Priority' },
  phase: { zh: '阶段', en: 'Phase' },
  name: { zh: '名称', en: 'Name' },
  namespace: { zh: '命名空间', en: 'Namespace' },
  message: { zh: '信息', en: 'Message' },
  nothing: { zh: '队列是空的', en: 'The queue is empty' },
})
